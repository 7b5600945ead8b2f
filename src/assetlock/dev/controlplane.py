"""A real local Kubernetes control plane, for as long as a `with` block lasts, or longer under a name.

    with ControlPlane() as cluster:
        cluster.kubectl("get", "namespaces", user="alice")

Everything is stopped and removed when the block ends, and when this process is gone, even by SIGKILL.
`keep()` lets it live on until `stop_named` ends it.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Self

from assetlock.dev import folders
from assetlock.dev.access import Access
from assetlock.dev.binaries import Binaries, Report
from assetlock.dev.errors import NotRunning, StartFailed
from assetlock.dev.provision import provide

SUPERVISOR: Sequence[str] = ("-m", "assetlock.dev.supervisor")
_STOP_TIMEOUT = 20.0


@dataclass(frozen=True, slots=True)
class AddedProcess:
    """A process that runs beside the control plane and ends with it."""

    name: str
    pid: int
    log: pathlib.Path


class ControlPlane(Access):
    """A control plane that this process started. It needs no event loop."""

    def __init__(
        self,
        name: str | None = None,
        *,
        durable: bool | None = None,
        audit: bool = False,
        report: Report = lambda _: None,
        binaries: Binaries | None = None,
    ) -> None:
        """Without a name its folder is a temporary one. `durable` (default: if named) syncs writes to disk.

        With `audit` the API server records every request in `audit.log` in the folder.
        """
        binaries = binaries or provide(report)
        self._supervisor = _Supervisor()
        folder = None if name is None else str(folders.named(name))
        try:
            ready = self._supervisor.ask(
                {
                    "folder": folder,
                    "durable": name is not None if durable is None else durable,
                    "audit": audit,
                    "binaries": {key: str(path) for key, path in asdict(binaries).items()},
                },
                report,
            )
        except BaseException:
            self._supervisor.stop()
            raise
        super().__init__(pathlib.Path(ready["folder"]), ready["server"], binaries.kubectl)

    def add_process(
        self,
        name: str,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        ready_url: str | None = None,
        restart: bool = False,
        timeout: float = 60,
    ) -> AddedProcess:
        """Start a process that ends with the control plane; wait until `ready_url` answers 200.

        With `restart` it is started again, after a pause, whenever it ends.
        """
        done = self._supervisor.ask(
            {
                "do": "add",
                "name": name,
                "argv": list(argv),
                "env": dict(env or {}),
                "ready_url": ready_url,
                "restart": restart,
                "timeout": timeout,
            }
        )
        return AddedProcess(name, done["pid"], pathlib.Path(done["log"]))

    def remove_process(self, name: str) -> None:
        """Stop a process that was added."""
        self._supervisor.ask({"do": "remove", "name": name})

    def keep(self) -> None:
        """Let it run on when this process ends."""
        self._supervisor.ask({"do": "keep"})
        self._supervisor.let_go()

    def stop(self) -> None:
        """Stop and remove everything."""
        self._supervisor.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


class _Supervisor:
    """The other end of `assetlock.dev.supervisor`'s standard input and output."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", *SUPERVISOR],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            text=True,
        )

    def ask(self, request: Mapping[str, Any], report: Report = lambda _: None) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None or stdin.closed:
            raise NotRunning("the control plane was stopped, or runs on by itself")
        with contextlib.suppress(BrokenPipeError):
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
        for line in stdout:
            answer: dict[str, Any] = json.loads(line)
            match answer["event"]:
                case "progress":
                    report(answer["text"])
                case "failed":
                    raise StartFailed(answer["error"])
                case _:
                    return answer
        raise StartFailed(f"the supervisor ended with {self._process.wait()}")

    def let_go(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()
        self._process.returncode = 0

    def stop(self) -> None:
        if self._process.stdin and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


def open_named(name: str) -> Access:
    """The way into a running control plane that was started under this name."""
    folder = folders.named(name)
    state = folders.read_state(folder) if folders.is_claimed(folder) else None
    if state is None or state.phase != "ready":
        raise NotRunning(
            f"no control plane called '{name}' runs; `assetlock dev up --name {name}` starts one"
        )
    return Access(folder, state.server, pathlib.Path(state.kubectl))


def stop_named(name: str) -> bool:
    """Stop and remove a control plane, whatever is left of it; False when there was nothing."""
    folder = folders.named(name)
    if not folder.exists():
        return False
    deadline = time.monotonic() + _STOP_TIMEOUT
    signal_number = signal.SIGTERM
    while folders.is_claimed(folder):
        if time.monotonic() > deadline:
            signal_number, deadline = signal.SIGKILL, deadline + _STOP_TIMEOUT
        if state := folders.read_state(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(state.supervisor, signal_number)
        time.sleep(0.1)
    shutil.rmtree(folder, ignore_errors=True)
    return True
