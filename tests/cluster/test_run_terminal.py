"""`assetlock run` at a terminal, as people use it."""

from __future__ import annotations

import fcntl
import os
import pathlib
import pty
import select
import shlex
import signal
import struct
import termios
import time
from collections.abc import Iterator

import pytest

from .conftest import Operated
from .running import Commands


class Screen:
    """A terminal with a process that leads its session."""

    def __init__(self, argv: list[str], environ: dict[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, environ)
        self.text = ""

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def shows(self, text: str, seconds: float = 40) -> None:
        """Read until it shows the text."""
        deadline = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < deadline, self.text
            if select.select([self.fd], [], [], 0.1)[0]:
                self.text += os.read(self.fd, 4096).decode()

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def status(self, *, stopped: bool = False) -> int:
        """Wait for the process to end, or to be stopped."""
        deadline = time.monotonic() + 40
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG | (os.WUNTRACED if stopped else 0))
            if pid:
                return status
            assert time.monotonic() < deadline, self.text
            time.sleep(0.05)

    def close(self) -> None:
        os.close(self.fd)


@pytest.fixture
def assetlock(operated: Operated, tmp_path: pathlib.Path) -> Commands:
    operated.asset()
    return Commands(operated, tmp_path)


@pytest.fixture
def screen(assetlock: Commands) -> Iterator[Screen]:
    """A run whose command talks with whoever sits there."""
    script = (
        "trap 'stty size' WINCH; echo begun; "
        'while read line; do [ "$line" = end ] && exit 4; echo "<$line>"; done; exit 5'
    )
    made = Screen(assetlock.argv("run", "vm-1", "--", "bash", "-c", script), assetlock.environment())
    made.shows("begun")
    yield made
    made.close()


def test_the_command_reads_from_the_terminal_and_sees_its_size(screen: Screen) -> None:
    screen.type("hello\n")
    screen.shows("<hello>")
    screen.resize(33, 77)
    screen.type("again\n")
    screen.shows("33 77")
    screen.type("end\n")
    assert os.waitstatus_to_exitcode(screen.status()) == 4


def test_whoever_interrupts_the_command_interrupts_the_run_too(screen: Screen, assetlock: Commands) -> None:
    screen.type("\x03")
    assert os.waitstatus_to_exitcode(screen.status()) == -signal.SIGINT
    assert assetlock.locks() == []


def test_a_run_is_suspended_with_its_command_and_goes_on_with_it(screen: Screen) -> None:
    screen.type("\x1a")
    assert os.WIFSTOPPED(screen.status(stopped=True))
    assert os.tcgetpgrp(screen.fd) == screen.pid
    os.kill(screen.pid, signal.SIGCONT)
    screen.type("back\n")
    screen.shows("<back>")
    screen.type("end\n")
    assert os.waitstatus_to_exitcode(screen.status()) == 4


def test_a_terminal_that_goes_away_ends_the_command(screen: Screen, assetlock: Commands) -> None:
    os.kill(screen.pid, signal.SIGHUP)
    assert os.waitstatus_to_exitcode(screen.status()) == 128 + signal.SIGHUP
    assert assetlock.locks() == []


def test_a_shell_script_that_is_interrupted_does_not_go_on(
    assetlock: Commands, tmp_path: pathlib.Path
) -> None:
    script = tmp_path / "script"
    command = shlex.join(assetlock.argv("run", "vm-1", "--", "sh", "-c", "echo begun; sleep 60"))
    script.write_text(f"{command}\necho went on\n")
    screen = Screen(["/bin/bash", str(script)], assetlock.environment())
    screen.shows("begun")
    screen.type("\x03")
    assert os.waitstatus_to_exitcode(screen.status()) == -signal.SIGINT
    assert "went on" not in screen.text
    screen.close()


def test_what_is_open_for_the_command_is_passed_on(assetlock: Commands, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "written"
    with path.open("w") as file:
        done = assetlock(
            "run", "vm-1", "--", "bash", "-c", f"echo hello >&{file.fileno()}", pass_fds=(file.fileno(),)
        )
    assert (done.returncode, path.read_text()) == (0, "hello\n")
