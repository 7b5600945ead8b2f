"""Where the control plane's programs are: in `KUBEBUILDER_ASSETS`, else in the cache."""

from __future__ import annotations

import os
import pathlib
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from assetlock.dev.errors import BuildFailed

VERSION = "v1.37.2"
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
Report = Callable[[str], None]
"""Is told, now and then, what is being done."""

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Binaries:
    """The four programs."""

    etcd: pathlib.Path
    apiserver: pathlib.Path
    controller_manager: pathlib.Path
    kubectl: pathlib.Path


def cache_folder(environ: Mapping[str, str] = os.environ) -> pathlib.Path:
    """Where built control planes are kept, one folder a version and platform."""
    base = environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "assetlock" / "controlplane"


def cached_version() -> str:
    """The name of this version's and platform's folder in the cache."""
    return f"{VERSION}-{platform_name()}"


def platform_name() -> str:
    """This machine's system and processor, as Go names them: ``linux-amd64``."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}-{_MACHINES.get(machine, machine)}"


def find(environ: Mapping[str, str] = os.environ) -> Binaries | None:
    """What is here already. `KUBEBUILDER_ASSETS` may lack some (envtest's has no controller manager)."""
    folders = [cache_folder(environ) / cached_version()]
    if assets := environ.get("KUBEBUILDER_ASSETS"):
        folders.insert(0, pathlib.Path(assets))
        if not any((folders[0] / name).exists() for name in NAMES):
            raise BuildFailed(f"KUBEBUILDER_ASSETS={assets} holds none of {', '.join(NAMES)}")
    found = [
        next((folder / name for folder in folders if os.access(folder / name, os.X_OK)), None)
        for name in NAMES
    ]
    etcd, apiserver, controller_manager, kubectl = found
    if etcd and apiserver and controller_manager and kubectl:
        return Binaries(etcd, apiserver, controller_manager, kubectl)
    return None
