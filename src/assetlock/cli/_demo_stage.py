"""Where the demo plays: runs commands as a shell would, shows them with their output, and checks what they say."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import click

_TIMEOUT = 60.0
_WIDTH = 100


class DemoFailed(Exception):
    """A step did not show what it says."""

    exit_code: ClassVar[int] = 1


@dataclass(frozen=True, slots=True)
class Shown:
    """What a command answered: its exit code, everything it printed, and how long it took."""

    code: int
    output: str
    seconds: float


@dataclass(slots=True)
class Stage:
    """Runs the commands of several users, each with an environment of its own, in one folder."""

    folder: pathlib.Path
    act: str = "before the first act"
    environments: dict[str, Mapping[str, str]] = field(default_factory=dict)
    seen: list[tuple[str, str]] = field(default_factory=list)

    def enter(self, user: str, environment: Mapping[str, str]) -> None:
        """Let somebody take part."""
        self.environments[user] = environment

    def begin(self, title: str) -> None:
        """Start an act."""
        self.act = title
        click.secho(f"\n── {title} {'─' * max(_WIDTH - len(title), 3)}", bold=True)

    def say(self, text: str) -> None:
        """Tell what the next commands are about."""
        click.secho(f"# {text}", fg="green")

    def saw(self, what: str, how: str) -> None:
        """Note for the summary what was shown."""
        self.seen.append((what, how))

    def fail(self, why: str) -> DemoFailed:
        """The failure of the present act, to be raised."""
        return DemoFailed(f'the step "{self.act}" failed: {why}')

    def run(
        self,
        user: str,
        command: str,
        *,
        says: Sequence[str] = (),
        lacks: Sequence[str] = (),
        fails: bool = False,
    ) -> Shown:
        """Run a command and show it; it must succeed (or, with `fails`, not), and say what is expected."""
        self._prompt(user, command)
        shown = self._finish(command, self._start(user, command))
        _show(shown)
        self._check(command, shown, says, lacks, fails)
        return shown

    @contextlib.contextmanager
    def meanwhile(self, user: str, command: str, *, says: Sequence[str] = ()) -> Iterator[None]:
        """Run a command beside those in the block, then wait for it, show it and check it."""
        self._prompt(user, f"{command} &")
        process = self._start(user, command)
        try:
            yield
            self._prompt(user, "wait")
            shown = self._finish(command, process)
        finally:
            process.kill()
        _show(shown)
        self._check(command, shown, says, (), False)

    def _start(self, user: str, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.folder,
            env={**os.environ, **self.environments[user]},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def _finish(self, command: str, process: subprocess.Popen[str]) -> Shown:
        begun = time.monotonic()
        try:
            output, _ = process.communicate(timeout=_TIMEOUT)
        except subprocess.TimeoutExpired:
            raise self.fail(f"`{command}` did not end within {_TIMEOUT:.0f} s") from None
        finally:
            process.kill()
        return Shown(process.returncode, output, time.monotonic() - begun)

    def _check(
        self, command: str, shown: Shown, says: Sequence[str], lacks: Sequence[str], fails: bool
    ) -> None:
        wrong = [f"did not say {text!r}" for text in says if text not in shown.output]
        wrong += [f"said {text!r}" for text in lacks if text in shown.output]
        if fails and shown.code == 0:
            wrong.append("succeeded, and should have been refused")
        elif shown.code != 0 and not fails:
            wrong.append(f"ended with exit code {shown.code}")
        if wrong:
            raise self.fail(f"`{command}` {', '.join(wrong)}")

    def _prompt(self, user: str, command: str) -> None:
        click.echo(click.style(f"{user} $ ", fg="cyan") + click.style(command, bold=True))


def _show(shown: Shown) -> None:
    if text := shown.output.rstrip("\n"):
        click.secho(text, fg="red" if shown.code else None)
