"""The terminal, handed to the command's group and taken back, as shells do with jobs.

Only a process in the terminal's foreground group may hand it on; in the background, and without a terminal, nothing
happens.
"""

from __future__ import annotations

import contextlib
import os
import signal
import termios
from typing import Any

_Attributes = list[Any]


class Terminal:
    """The controlling terminal of this process, if it has one and is in the foreground."""

    def __init__(self) -> None:
        self._tty = _opened()
        self._attributes: _Attributes | None = None
        self.is_ours = self._tty is not None and _foreground(self._tty) == os.getpgrp()
        if self._tty is not None and self.is_ours:
            with contextlib.suppress(termios.error):
                self._attributes = termios.tcgetattr(self._tty)

    def prepare(self) -> None:
        """In the new process: take the terminal before the command can read from it."""
        if self.is_ours and self._tty is not None:
            _hand_over(self._tty, os.getpgrp())

    def give(self, group: int) -> None:
        """Hand the terminal to a group, if it is ours to hand on."""
        if self._tty is not None and _foreground(self._tty) == os.getpgrp():
            self.is_ours = True
            _hand_over(self._tty, group)

    def take_back(self, *, repair: bool = False) -> None:
        """Take the terminal back; ``repair`` undoes what a command that was killed has done to it."""
        if self._tty is None or not self.is_ours:
            return
        _hand_over(self._tty, os.getpgrp())
        if repair and self._attributes is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._tty, termios.TCSADRAIN, self._attributes)


def _opened() -> int | None:
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None


def _foreground(tty: int) -> int | None:
    try:
        return os.tcgetpgrp(tty)
    except OSError:
        return None


def _hand_over(tty: int, group: int) -> None:
    """From the background the terminal would stop us for it; the signal is ignored for as long as that takes."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(tty, group)
    finally:
        signal.signal(signal.SIGTTOU, before)
