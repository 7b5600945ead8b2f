"""What can go wrong with a local control plane; each carries the exit code that the command line answers with."""

from __future__ import annotations

import os
from typing import ClassVar


class DevError(Exception):
    """A failure that its message explains to a person."""

    exit_code: ClassVar[int] = os.EX_UNAVAILABLE


class BadRequest(DevError):
    """What was asked for makes no sense."""

    exit_code: ClassVar[int] = os.EX_USAGE


class NotRunning(DevError):
    """No control plane of that name runs."""


class AlreadyRunning(DevError):
    """A control plane of that name runs, or is just starting or stopping."""


class StartFailed(DevError):
    """A process did not start, or did not get ready."""


class BuildFailed(DevError):
    """The control plane's programs are not here, and could not be built."""
