"""The folder of one control plane: who owns it, what runs in it.

Whoever supervises holds a lock on the folder itself for as long as it lives, so "does it run" never depends on a
process ID that may belong to somebody else by now, and a folder whose supervisor was killed is known as abandoned.
"""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from assetlock.dev import pki
from assetlock.dev.errors import AlreadyRunning, BadRequest

Phase = Literal["starting", "ready", "failed"]
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class Running:
    """One process of a control plane."""

    name: str
    pid: int
    port: int | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What a supervisor last wrote down about itself."""

    phase: Phase
    supervisor: int
    server: str = ""
    kubectl: str = ""
    error: str = ""
    processes: Sequence[Running] = field(default_factory=tuple)


def named(name: str, environ: Mapping[str, str] = os.environ) -> pathlib.Path:
    """The folder of the control plane called `name`."""
    if not _NAME.fullmatch(name):
        raise BadRequest(f"'{name}' can't name a control plane: use up to 40 of a-z, 0-9 and '-'")
    return home(environ) / name


def home(environ: Mapping[str, str] = os.environ) -> pathlib.Path:
    """Where the folders of named control planes are."""
    base = environ.get("XDG_STATE_HOME") or pathlib.Path.home() / ".local" / "state"
    return pathlib.Path(base) / "assetlock" / "dev"


def claim(folder: pathlib.Path) -> int:
    """Make the folder, empty and ours alone, until the returned descriptor is closed or we are gone."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        if _locked(descriptor) and _same(folder, descriptor):
            _empty(folder)
            return descriptor
        os.close(descriptor)
        if time.monotonic() > deadline:
            raise AlreadyRunning(f"a control plane runs in {folder}, or is just starting or stopping")
        time.sleep(0.05)


def is_claimed(folder: pathlib.Path) -> bool:
    """Somebody alive supervises what is in there."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return False
    try:
        return not _locked(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def write_state(folder: pathlib.Path, state: State) -> None:
    """Replace what `read_state` reads, in one step."""
    pki.write_private(folder / "state.json", json.dumps(asdict(state), indent=1).encode())


def read_state(folder: pathlib.Path) -> State | None:
    """What the supervisor wrote last, if it got that far."""
    try:
        document: dict[str, Any] = json.loads((folder / "state.json").read_bytes())
    except FileNotFoundError:
        return None
    processes = tuple(Running(**each) for each in document.pop("processes"))
    return State(**document, processes=processes)


def _locked(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _same(folder: pathlib.Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(folder.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _empty(folder: pathlib.Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
