"""A small process that kills the command's group at the lock's deadline, if the process that runs it no longer can.

It is forked before any thread starts, and learns of each new deadline through a pipe. While the parent lives, it only
kills at the deadline itself: the parent is stopped then, or stuck. When the parent is gone, however that happened, it
ends the command in good time with SIGTERM, and at the deadline with SIGKILL.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal

from assetlock.client import clock

_TICK = 1.0
_IGNORED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGTSTP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class Watchdog:
    """The parent's end of it."""

    def __init__(self) -> None:
        reading, self._pipe = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                _isolate(keep=reading)
                _Guard(reading).run()
            finally:
                os._exit(0)
        os.close(reading)
        self._told = b""

    def update(self, group: int, deadline: float, kill_after: float) -> None:
        """Tell it which group is to be gone when, and how long before that SIGTERM comes."""
        told = f"{group} {deadline:.3f} {kill_after:.3f}\n".encode()
        if told != self._told:
            self._told = told
            with contextlib.suppress(OSError):
                os.write(self._pipe, told)

    def stop(self) -> None:
        """It is not needed any more."""
        with contextlib.suppress(OSError):
            os.write(self._pipe, b"done\n")
        os.close(self._pipe)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _isolate(*, keep: int) -> None:
    """Be out of reach of the terminal and of whoever reads the command's output until its end."""
    signal.set_wakeup_fd(-1)
    os.setsid()
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    limit = os.sysconf("SC_OPEN_MAX")
    os.closerange(3, keep)
    os.closerange(keep + 1, min(limit, 65536))
    os.chdir("/")


class _Guard:
    def __init__(self, pipe: int) -> None:
        self._pipe: int | None = pipe
        self._rest = b""
        self._group = 0
        self._deadline, self._kill_after = math.inf, 0.0
        self._warned = False

    def run(self) -> None:
        while self._listen():
            left = self._deadline - clock.now()
            if left <= 0:
                self._send(signal.SIGKILL)
                return
            if self._pipe is None and left <= self._kill_after and not self._warned:
                self._warned = True
                self._send(signal.SIGTERM)
                self._send(signal.SIGCONT)

    def _listen(self) -> bool:
        """Wait for news, or for a moment that may matter; whether anything is left to do."""
        left = self._deadline - clock.now()
        if self._pipe is None:
            left = left if self._warned else left - self._kill_after
        pipes = [] if self._pipe is None else [self._pipe]
        ready, _, _ = select.select(pipes, [], [], max(0.0, min(_TICK, left)))
        if ready and self._pipe is not None:
            data = os.read(self._pipe, 4096)
            if not data:
                self._pipe = None
            *lines, self._rest = (self._rest + data).split(b"\n")
            if b"done" in lines:
                return False
            for line in lines:
                group, deadline, kill_after = line.split()
                self._group, self._deadline, self._kill_after = int(group), float(deadline), float(kill_after)
        return self._pipe is not None or self._exists()

    def _exists(self) -> bool:
        if not self._group:
            return False
        try:
            os.killpg(self._group, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def _send(self, number: int) -> None:
        if self._group:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, number)
