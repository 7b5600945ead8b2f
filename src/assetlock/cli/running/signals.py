"""Signals that come while a lock is waited for, and while the command runs.

While it waits, a signal interrupts; while the command runs, signals are collected, and wake the loop that passes them
on. A signal that was ignored from the start (`nohup`, a job in the background) stays so, for the command too.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections import deque
from types import FrameType

PASSED_ON = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
    signal.SIGTSTP,
    signal.SIGCONT,
)
_INTERRUPTING = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


class Interrupted(BaseException):
    """A signal came before the command was started."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


class Signals:
    """The signals of this process, from here on."""

    def __init__(self) -> None:
        self.pending: deque[int] = deque()
        self.collecting = False
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        os.set_blocking(self._reading, False)
        for number in (*PASSED_ON, signal.SIGCHLD):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._handle)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)

    def wake(self) -> None:
        """Make `wait` return; from any thread."""
        with contextlib.suppress(OSError):
            os.write(self._writing, b"\0")

    def wait(self, seconds: float) -> None:
        """Wait for a signal or `wake`."""
        ready, _, _ = select.select([self._reading], [], [], max(0.0, seconds))
        if ready:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._reading, 512):
                    pass

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGCHLD:
            return
        if self.collecting:
            self.pending.append(number)
        elif number in _INTERRUPTING:
            raise Interrupted(number)
        elif number == signal.SIGTSTP:
            os.kill(os.getpid(), signal.SIGSTOP)
