"""Getting hold of the control plane's programs: what is here already, else built into the cache."""

from __future__ import annotations

from assetlock.dev import binaries, build
from assetlock.dev.binaries import Binaries, Report
from assetlock.dev.errors import BuildFailed


def provide(report: Report) -> Binaries:
    """Find the programs, or build them: minutes, once a version."""
    if found := binaries.find():
        return found
    target = binaries.cache_folder() / binaries.cached_version()
    build.build(target, build.CONTROL_PLANE, report)
    if found := binaries.find():
        return found
    raise BuildFailed(f"{target} is not complete; remove it to have it built again")
