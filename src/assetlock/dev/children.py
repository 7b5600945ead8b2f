"""Child processes that can't outlive us: on Linux the kernel kills them when their parent is gone."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import pathlib
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Child:
    """A started process and where its output goes."""

    name: str
    process: asyncio.subprocess.Process
    log: pathlib.Path
    port: int | None = None

    @property
    def running(self) -> bool:
        """Not yet seen to have ended."""
        return self.process.returncode is None

    async def stop(self, grace: float) -> None:
        """Ask it to end, make it end after `grace` seconds, and wait until it has."""
        if not self.running:
            return
        with contextlib.suppress(ProcessLookupError):
            if grace > 0:
                self.process.terminate()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.process.wait(), grace)
                    return
            self.process.kill()
        await self.process.wait()

    def last_words(self, lines: int = 5) -> str:
        """The end of its output."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


async def start(
    name: str,
    argv: Sequence[str],
    logs: pathlib.Path,
    *,
    env: Mapping[str, str] | None = None,
    port: int | None = None,
) -> Child:
    """Start `argv`, its output appended to `<logs>/<name>.log`. Call it from the main thread only."""
    log = logs / f"{name}.log"
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(env or {})},
            preexec_fn=dies_with_parent(),
        )
    return Child(name, process, log, port)


def dies_with_parent() -> Callable[[], None] | None:
    """For `preexec_fn`: the child is killed when the thread that starts it is gone."""
    if sys.platform != "linux":
        return None
    parent, prctl = os.getpid(), ctypes.CDLL(None).prctl

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(os.EX_UNAVAILABLE)

    return prepare
