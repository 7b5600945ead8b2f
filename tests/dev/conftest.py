"""Folders of the test's own for what the commands would keep in the user's home, and a command line to run."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from assetlock.dev import provide
from assetlock.dev.build import Recipe

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(tmp_path: pathlib.Path) -> Mapping[str, str]:
    """The programs stay where they are; state goes to a folder of the test's own."""
    assets = provide(lambda _: None).apiserver.parent
    return {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "KUBEBUILDER_ASSETS": str(assets)}


@pytest.fixture
def assetlock(environment: Mapping[str, str]) -> Iterator[Run]:
    """Run the command `assetlock`; whatever it left running is stopped after the test."""

    def run(
        *arguments: str, python: pathlib.Path | str = sys.executable, **overrides: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(python), "-m", "assetlock.cli.main", *arguments],
            env={**environment, **overrides},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    yield run
    run("dev", "down", "--all")


def _as_in_a_terminal() -> None:
    """Heed Ctrl-C, although shells start their background jobs, these tests perhaps, without."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def started(environment: Mapping[str, str]) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start Python with these arguments and a pipe to read from; killed after the test."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=_as_in_a_terminal,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.fixture
def tiny(tmp_path: pathlib.Path) -> Recipe:
    """A Go module that builds in no time and needs no network, with a program to be renamed."""
    source = tmp_path / "tiny"
    (source / "cmd" / "hello").mkdir(parents=True)
    (source / "go.mod").write_text("module example.org/tiny\n\ngo 1.24\n")
    (source / "go.sum").touch()
    (source / "cmd" / "hello" / "main.go").write_text('package main\n\nfunc main() { println("hello") }\n')
    return Recipe(source, {"greeter": "example.org/tiny/cmd/hello"})


def processes_in(folder: pathlib.Path) -> list[int]:
    """Processes that name the folder on their command line."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.fsencode(folder) in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def eventually(condition: Callable[[], bool], within: float = 10) -> None:
    """Fail unless the condition comes true in time."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not so within {within} s"
        time.sleep(0.02)
