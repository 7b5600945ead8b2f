"""Helm, built from its Go module into the cache, as the programs of the control plane are.

``python -m charts.tools.helm`` (``make helm``) builds it and prints where it is.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
from collections.abc import Sequence

from assetlock.dev import binaries, build
from assetlock.dev.binaries import Report
from assetlock.dev.build import Recipe

ROOT = pathlib.Path(__file__).parents[2]
CHART = ROOT / "charts" / "assetlock"
RELEASE, NAMESPACE = "assetlock", "assetlock-system"

_SOURCE = pathlib.Path(__file__).parent / "helm-module"
_SECONDS = 280.0


class HelmFailed(Exception):
    """Helm refused; what it says."""


def version() -> str:
    """The version of Helm that the Go module asks for, as ``v4.1.2``."""
    found = re.search(r"helm\.sh/helm/v4 (v\S+)", (_SOURCE / "go.mod").read_text(encoding="utf-8"))
    if found is None:
        raise HelmFailed(f"{_SOURCE / 'go.mod'} names no version of helm.sh/helm/v4")
    return found[1]


def provide(report: Report = print) -> pathlib.Path:
    """The path of Helm; builds it when the cache has none: some two minutes, once a version."""
    folder = binaries.cache_folder().with_name("helm") / f"{version()}-{binaries.platform_name()}"
    recipe = Recipe(
        source=_SOURCE,
        programs={"helm": "helm.sh/helm/v4/cmd/helm"},
        linker_flags=f"-s -w -X helm.sh/helm/v4/internal/version.version={version()}",
        duration="once; about 2 minutes on two cores",
    )
    if not (folder / "helm").exists():
        build.build(folder, recipe, report)
    return folder / "helm"


def run(
    *arguments: str, env: dict[str, str] | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run Helm; raises `HelmFailed` with what it says unless `check` is off."""
    done = subprocess.run(
        [str(provide()), *arguments], env=env, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    if check and done.returncode != 0:
        raise HelmFailed(done.stderr or done.stdout)
    return done


def template(*arguments: str, values: Sequence[pathlib.Path] = (), namespace: str = NAMESPACE) -> str:
    """What the chart renders to."""
    files = [f"--values={path}" for path in values]
    return run("template", RELEASE, str(CHART), f"--namespace={namespace}", *files, *arguments).stdout


if __name__ == "__main__":
    print(provide())
