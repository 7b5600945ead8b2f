# The image that both processes run from: docker build --tag registry.example.com/assetlock:0.1.0 .
#
# Every package is locked with its hash. To pin the two bases as well, replace each tag by the digest that
# `docker buildx imagetools inspect` shows for it. SBOM and provenance: docker buildx build --sbom=true --provenance=mode=max
FROM python:3.13-slim-trixie AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 SOURCE_DATE_EPOCH=0
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /opt/assetlock \
 && /opt/assetlock/bin/pip install --require-hashes --only-binary=:all: -r requirements.lock
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --require-hashes --only-binary=:all: -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY crds crds
COPY manifests manifests
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /opt/wheel . \
 && /opt/assetlock/bin/pip install --no-deps --no-index /opt/wheel/*.whl \
 && /opt/assetlock/bin/pip uninstall --yes pip \
 && python -m compileall -q /opt/assetlock/lib
# The last stage has its Python elsewhere.
RUN ln -sf /usr/bin/python3.13 /opt/assetlock/bin/python3 \
 && sed -i 's|^home = .*|home = /usr/bin|' /opt/assetlock/pyvenv.cfg

FROM gcr.io/distroless/python3-debian13:nonroot
COPY --from=build /opt/assetlock /opt/assetlock
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# By number, so that Kubernetes can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["/opt/assetlock/bin/assetlock"]
