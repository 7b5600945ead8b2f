"""`assetlock` as a user of a cluster runs it, in processes of their own."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .conftest import Operated

ASSETLOCK = (sys.executable, "-P", "-m", "assetlock.cli.main")

TICKING = """
f=$1; shift
(trap '' TERM; while :; do date +%s.%N >> $f; sleep 0.05; done) &
trap 'echo TERM >> $f.signals' TERM
while :; do date +%s.%N >> $f; sleep 0.05; done
"""
"""Writes the time to a file, over and over, also from a grandchild, and does not end at SIGTERM."""


@dataclass
class Commands:
    """Runs `assetlock` as alice, unless another kubeconfig is given."""

    operated: Operated
    folder: pathlib.Path
    kubeconfig: pathlib.Path | None = None
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        path = self.kubeconfig or self.operated.cluster.kubeconfig_for("alice")
        return {**os.environ, "KUBECONFIG": str(path), "PYTHONPATH": os.pathsep.join(sys.path)}

    def argv(self, command: str, *args: str) -> list[str]:
        return [*ASSETLOCK, command, "-n", self.operated.namespace, *args]

    def __call__(
        self, command: str, *args: str, timeout: float = 60, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        argv, env = self.argv(command, *args), {**self.environment(), **options.pop("env", {})}
        return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=timeout, **options)

    def start(self, command: str, *args: str, **options: Any) -> subprocess.Popen[str]:
        """Start it; it is killed at the end of the test."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        process = subprocess.Popen(self.argv(command, *args), env=self.environment(), **options)
        self.started.append(process)
        return process

    def ticking(self, *args: str, name: str = "ticks") -> tuple[subprocess.Popen[str], Ticks]:
        """`run` with a command that writes the time; returns when it does."""
        ticks = Ticks(self.folder / name)
        command = ("--", "sh", "-c", TICKING, "sh", str(ticks.path))
        process = self.start("run", "vm-1", *args, *command, start_new_session=True)
        wait_until(ticks.path.exists, process)
        return process, ticks

    def stop(self) -> None:
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.communicate()

    def locks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.operated.kubectl("get", "alk", "-o", "json").stdout)[
            "items"
        ]
        return found


@dataclass
class Ticks:
    """The file that the command writes."""

    path: pathlib.Path

    @property
    def last(self) -> float:
        """The last moment at which anything of it ran."""
        return float(self.path.read_text().split("\n")[-2])

    def are_over(self) -> bool:
        """Whether nothing of the command runs any more."""
        return not any(argv[0] == "sh" for argv in processes_with(str(self.path)).values())

    @property
    def signals(self) -> list[str]:
        path = self.path.with_name(f"{self.path.name}.signals")
        return path.read_text().split() if path.exists() else []


def processes_with(argument: str) -> dict[int, list[str]]:
    """The processes that have this among their arguments."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            argv = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if argument in argv:
                found[int(entry.name)] = argv
    return found


def wait_until(
    holds: Callable[[], bool], process: subprocess.Popen[str] | None = None, seconds: float = 40
) -> None:
    """Wait for something that follows by itself, unless the process ends before."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.05)
