"""A command in a process group of its own, so that all of it can be signalled, children of children included."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

NOT_EXECUTABLE = 126
NOT_FOUND = 127
SIGNALLED = 128

_STEP = 0.02


class CannotStart(Exception):
    """The command can't be started."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Group:
    """The process group of a command that was started. Signals go to all of it."""

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], prepare: Callable[[], None]
    ) -> None:
        """``prepare`` runs in the new process, before the command. Raises `CannotStart`."""
        try:
            self._process = subprocess.Popen(
                command,
                env=environ,
                process_group=0,
                close_fds=False,  # what the caller has opened for the command is passed on
                preexec_fn=prepare,
            )
        except FileNotFoundError as error:
            raise CannotStart(f"{command[0]}: command not found", NOT_FOUND) from error
        except OSError as error:
            raise CannotStart(f"{command[0]}: {error.strerror}", NOT_EXECUTABLE) from error
        self.id = self._process.pid
        self.exit_code: int | None = None

    def send(self, number: int) -> None:
        """Send a signal to all of the group that is left; one that is to end it also if it is stopped."""
        self._send(number)
        if number in (signal.SIGTERM, signal.SIGHUP):
            self._send(signal.SIGCONT)

    def _send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.id, number)

    def poll(self) -> bool:
        """Take note of what became of the command; whether it has just been stopped."""
        stopped = False
        while self.exit_code is None:
            pid, status = os.waitpid(self.id, os.WNOHANG | os.WUNTRACED)
            if pid == 0:
                break
            if os.WIFSTOPPED(status):
                stopped = True
            else:
                self.exit_code = _exit_code(status)
                self._process.returncode = self.exit_code  # `subprocess` is not to wait for it again
        return stopped

    def exists(self) -> bool:
        """Whether anything of the group is left."""
        try:
            os.killpg(self.id, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    def vanishes(self, seconds: float) -> bool:
        """Wait for the whole group to be gone."""
        deadline = time.monotonic() + seconds
        while True:
            self.poll()
            reap_orphans(but=self.id)
            if not self.exists():
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(_STEP)


def reap_orphans(but: int) -> None:
    """As process 1 of a container, collect what others have left; not the process ``but``, whose end is awaited."""
    if os.getpid() != 1:
        return
    with contextlib.suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid == but:
                return
            os.waitpid(ended.si_pid, 0)


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else SIGNALLED - code
