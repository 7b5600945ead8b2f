"""A real local Kubernetes control plane: its programs found or built, started, stopped, and nothing left behind."""

from assetlock.dev.access import Access
from assetlock.dev.binaries import Binaries, find
from assetlock.dev.controlplane import AddedProcess, ControlPlane, open_named, stop_named
from assetlock.dev.errors import (
    AlreadyRunning,
    BadRequest,
    BuildFailed,
    DevError,
    NotRunning,
    StartFailed,
)
from assetlock.dev.provision import provide

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
