# Each target sets up what it needs first. `make help` lists them.
PYTHON ?= python3
WORKERS ?= 2
# Tests wait for much of their time.
TESTERS ?= 3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --upgrade --generate-hashes --no-emit-index-url \
  --no-header --no-annotate --quiet

.DEFAULT_GOAL := help
.PHONY: help setup controlplane helm demo test lint format bench sim exhaustive nightly chaos restarts mutants matrix fuzz \
  crds manifests docs release-check lock clean

help:  ## List the targets
	@sed -n 's/^\([a-z-]*\):.*##/\1\t/p' $(MAKEFILE_LIST)

setup: $(INSTALLED)  ## Make .venv with the locked versions of everything

$(INSTALLED): requirements-dev.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

controlplane: setup  ## Find or build etcd, kube-apiserver, kube-controller-manager and kubectl
	$(BIN)/assetlock dev build

helm: setup  ## Build Helm
	$(BIN)/python -m charts.tools.helm

demo: controlplane  ## Watch locks at work on a real control plane
	$(BIN)/assetlock demo $(ARGS)

test: controlplane helm  ## Run every test, against a real control plane where it matters
	$(BIN)/python -m pytest -n $(TESTERS) --dist loadfile --no-loadscope-reorder --durations 15 $(ARGS)

lint: setup  ## Format, lint, types, layers, links of the documentation
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy --strict src charts/tools
	$(BIN)/lint-imports
	$(BIN)/zensical build --strict

docs: setup  ## Build the documentation site in build/site
	$(BIN)/zensical build --strict --clean

release-check: helm  ## Try a release: build twice to the same bytes, install into an empty environment, run
	$(BIN)/python -m charts.tools.release_check

format: setup  ## Format, and mend what can be mended
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: controlplane  ## Measure, each figure beside its yardstick; writes build/bench.json: ONLY="grant handover" for some
	$(BIN)/python -m benchmarks $(ONLY)

sim: setup  ## Play schedules in virtual time: SEEDS=2000 START=0 and all that ever failed, or one again: SEED=7
	$(BIN)/python -m tests.sim.run $(if $(SEED),--seed $(SEED) --with '$(WITH)' --mute '$(MUTE)',\
	  --start $(or $(START),0) --seeds $(or $(SEEDS),500) --failed-once --processes $(WORKERS))

nightly: controlplane  ## All that takes hours: new schedules, every planted bug, chaos, and a hundred kills
	$(MAKE) sim START=$$(date +%Y%m%d)00000 SEEDS=20000
	$(MAKE) mutants
	$(MAKE) chaos MINUTES=10
	$(MAKE) restarts KILLS=100

exhaustive: setup  ## Visit every state that the decision can lead to within DEPTH=12 steps
	$(BIN)/python -m tests.exhaustive.run --depth $(or $(DEPTH),12)

chaos: controlplane  ## Hurt a real control plane for MINUTES=10, and judge it; writes docs/proof.md and docs/proof.svg
	$(BIN)/python -m tests.chaos.run --minutes $(or $(MINUTES),10) --docs

restarts: controlplane  ## Kill the operator under load with -9, KILLS=100 times, and judge it
	$(BIN)/python -m tests.restarts.run --kills $(or $(KILLS),100) $(if $(SEED),--seed $(SEED))

mutants: controlplane  ## Plant each kept bug in turn, and show which test finds it: ARGS="stamp lease" for some
	$(BIN)/python -m tests.mutants.run --workers $(WORKERS) $(ARGS)

matrix: controlplane  ## Try every way around the fence, and write docs/fence-matrix.md
	$(BIN)/python -m tests.cluster.matrix

fuzz: setup  ## Throw reviews at the webhooks: REVIEWS=100000
	REVIEWS=$(or $(REVIEWS),100000) $(BIN)/python -m pytest -q --timeout=0 tests/fuzz

crds: setup  ## Generate crds/ and docs/reference.md from the models
	$(BIN)/python -m assetlock.model.generate

manifests: helm  ## Render manifests/ from the chart; write the chart's schema and README from its values
	$(BIN)/python -m charts.tools.values
	$(BIN)/python -m charts.tools.manifests

lock: setup  ## Lock the newest allowed versions
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(COMPILE) --extra dev --output-file requirements-dev.lock pyproject.toml
	$(COMPILE) --constraint requirements-dev.lock --output-file requirements.lock pyproject.toml
	echo hatchling | $(COMPILE) --constraint requirements-dev.lock --output-file requirements-build.lock -

clean:  ## Remove what these targets made, but for the cache of built programs
	rm -rf $(VENV) .cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
