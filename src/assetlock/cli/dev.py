"""`assetlock dev`: a real local control plane, from the shell."""

from __future__ import annotations

import os
import pathlib
import shlex
import signal
import sys
import time
from collections.abc import Sequence

import click

from assetlock.dev import ControlPlane, folders, open_named, provide, stop_named
from assetlock.dev.binaries import VERSION
from assetlock.dev.errors import AlreadyRunning, NotRunning

DEFAULT = "default"
OPERATOR_PROCESS = "controller"
_QUIET_SECONDS = 20.0

name_option = click.option(
    "--name", default=DEFAULT, show_default=True, help="Which control plane; several run side by side."
)


@click.group()
def dev() -> None:
    """Start, use and stop a real local control plane: etcd, kube-apiserver, kube-controller-manager."""
    signal.signal(signal.SIGTERM, _interrupt)


@dev.command()
@name_option
@click.option("--operator", is_flag=True, help="Install assetlock in it and run its processes beside it.")
@click.option("--foreground", is_flag=True, help="Stay, and stop it on Ctrl-C.")
def up(name: str, operator: bool, foreground: bool) -> None:
    """Start one; return when it is ready, with --operator when the operator serves too."""
    if not foreground and _is_up(name, operator):
        return
    progress = Progress()
    begin = time.monotonic()
    provide(progress)
    with ControlPlane(name, report=progress) as running:
        served = None
        if operator:
            from assetlock.cli import stack

            served = stack.start(running, keep_running=True, parts=tuple(stack.Part), report=progress)
        progress.done()
        click.echo(f"control plane '{name}' is ready at {running.server} ({time.monotonic() - begin:.1f} s)")
        if served is not None:
            click.echo(f"the HTTP API is at {served.url(stack.Part.HTTP, '')}")
        if foreground:
            click.echo("Ctrl-C stops it")
            signal.pause()
        running.keep()
    click.echo(f'to use it:  eval "$(assetlock dev env{_name_option(name)})"')


@dev.command()
def build() -> None:
    """Find or build the binaries: find them, or build them, which takes minutes once."""
    progress = Progress()
    found = provide(progress)
    progress.done()
    click.echo(f"control plane {VERSION} is in {found.apiserver.parent}")


@dev.command()
@name_option
def env(name: str) -> None:
    """Print what a shell's `eval` needs to use it."""
    for variable, value in open_named(name).exports().items():
        click.echo(f"export {variable}={shlex.quote(value)}")


@dev.command()
@name_option
@click.option("--user", required=True, help="Who to be.")
@click.option("--group", "groups", multiple=True, help="A group to be in; may be repeated.")
def kubeconfig(name: str, user: str, groups: Sequence[str]) -> None:
    """Print the path of a kubeconfig that authenticates as anybody."""
    click.echo(open_named(name).kubeconfig_for(user, *groups))


@dev.command()
@click.option("--name", default=None, help="Only this one.")
def status(name: str | None) -> None:
    """Show what runs; exit with 69 when nothing does."""
    names = [name] if name else sorted(each.name for each in folders.home().glob("*") if each.is_dir())
    shown = [each for each in names if _show(each)]
    if not shown:
        raise NotRunning(f"no control plane called '{name}'" if name else "no control plane runs")


@dev.command()
@click.option("--name", default=DEFAULT, show_default=True, help="Which control plane.")
@click.option("--all", "every", is_flag=True, help="Every one.")
def down(name: str, every: bool) -> None:
    """Stop one and remove all of it."""
    for each in sorted(path.name for path in folders.home().glob("*")) if every else [name]:
        found = stop_named(each)
        click.echo(
            f"control plane '{each}' is stopped and removed" if found else f"no control plane '{each}'"
        )


def _is_up(name: str, operator: bool) -> bool:
    folder = folders.named(name)
    state = folders.read_state(folder) if folders.is_claimed(folder) else None
    if state is None or state.phase != "ready":
        return False
    if operator and not any(each.name == OPERATOR_PROCESS for each in state.processes):
        down_first = f"assetlock dev down{_name_option(name)}"
        raise AlreadyRunning(f"control plane '{name}' runs without the operator; stop it first: {down_first}")
    click.echo(f"control plane '{name}' runs already at {state.server}")
    return True


def _name_option(name: str) -> str:
    return "" if name == DEFAULT else f" --name {name}"


class Progress:
    """On a terminal one line that changes; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._live, self._kind, self._next = sys.stderr.isatty(), "", 0.0
        self._begin = time.monotonic()

    def __call__(self, text: str) -> None:
        """Show what is being done."""
        kind, now = text.split(":")[0], time.monotonic()
        if self._live:
            seconds = int(now - self._begin)
            width = max(os.get_terminal_size(sys.stderr.fileno()).columns - 1, 20)
            click.echo(f"\r\x1b[K{f'[{seconds // 60}:{seconds % 60:02}] {text}'[:width]}", nl=False, err=True)
        elif kind != self._kind or now >= self._next:
            click.echo(text, err=True)
            self._next = now + _QUIET_SECONDS
        self._kind = kind

    def done(self) -> None:
        """Leave the line."""
        if self._live:
            click.echo("\r\x1b[K", nl=False, err=True)


def _show(name: str) -> bool:
    folder = folders.named(name)
    state = folders.read_state(folder) if folder.exists() else None
    if state is None:
        return False
    alive = folders.is_claimed(folder)
    phase = state.phase if alive or state.phase == "failed" else "abandoned"
    click.echo(f"{name}: {phase}{f' at {state.server}' if alive else ''}  ({folder})")
    if state.error:
        click.echo(f"  {state.error}")
    if alive:
        row = "  {:<28}{:>8}{:>7}  {:>8}"
        click.echo(row.format("PROCESS", "PID", "PORT", "MEMORY"))
        supervisor = folders.Running("supervisor", state.supervisor)
        for each in (*state.processes, supervisor):
            click.echo(row.format(each.name, each.pid, each.port or "-", _memory(each.pid)))
    return True


def _memory(pid: int) -> str:
    try:
        status_lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return "-"
    kilobytes = next((int(line.split()[1]) for line in status_lines if line.startswith("VmRSS:")), 0)
    return f"{kilobytes // 1024} MB"


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
