"""A real local Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager): found or built, started, stopped."""

from assetlock.dev.access import Access
from assetlock.dev.binaries import Binaries, find, provide
from assetlock.dev.controlplane import AddedProcess, ControlPlane, open_named, stop_named
from assetlock.dev.errors import (
    AlreadyRunning,
    BadRequest,
    BuildFailed,
    DevError,
    NotRunning,
    StartFailed,
)

__all__ = [
    "Access",
    "AddedProcess",
    "AlreadyRunning",
    "BadRequest",
    "Binaries",
    "BuildFailed",
    "ControlPlane",
    "DevError",
    "NotRunning",
    "StartFailed",
    "find",
    "open_named",
    "provide",
    "stop_named",
]
