"""``assetlock run``: runs a command while it holds a lock, as flock does with files."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from assetlock.cli import _asking, _cluster, _names

if TYPE_CHECKING:
    from assetlock.cli.running.signals import Signals
    from assetlock.client.session.locks import Lock
    from assetlock.client.session.requests import Request
    from assetlock.client.session.term import Term


LEAVING: float = 5.0
"""Seconds for which the lock is tried to be released at the end."""


class _Command(click.Command):
    """Everything behind ``--`` is the command to run, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            dashes = args.index("--")
            ctx.meta["assetlock.command"], args = args[dashes + 1 :], args[:dashes]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "-- COMMAND..."]


_EPILOG = """\b
Exit codes: the command's own, 128+n if signal n ended it, 126 and 127 if it can't be
started; 64 usage, 66 no such asset, 69 API server or operator not reachable, 75 held
by another (-E sets it), 76 lock lost, 77 not permitted, 78 configuration."""


@click.command(cls=_Command, epilog=_EPILOG)
@click.argument("assets", nargs=-1, required=True, type=_names.ASSET, metavar="ASSET...")
@_asking.options
@click.option(
    "--kill-after",
    type=_names.Seconds(),
    help="How long after SIGTERM comes SIGKILL when the lock is lost. Default: 10s; a fifth of the ttl at most.",
)
@click.option(
    "--on-lost",
    type=click.Choice(("kill", "ignore")),
    default="kill",
    show_default=True,
    help="What becomes of the command when the lock is lost.",
)
@_cluster.options
@click.pass_context
def run(
    context: click.Context,
    cluster: _cluster.Cluster,
    ask: Callable[[str], Request],
    kill_after: float | None,
    on_lost: str,
    conflict_exit_code: int,
    quiet: bool,
) -> int:
    """Run COMMAND while holding the lock on ASSET, or on several assets together.

    The lock is renewed for as long as the command runs, and released when it ends. If it is lost, the command and
    all that it has started get SIGTERM and then SIGKILL, before anybody else can get the lock.

    The command finds ASSETLOCK_ASSET, ASSETLOCK_TOKEN (the fencing token), ASSETLOCK_EXPIRES, ASSETLOCK_LOCK and
    ASSETLOCK_NAMESPACE in its environment.
    """
    command = context.meta.get("assetlock.command")
    if not command:
        raise click.UsageError(
            "there is no command: write it behind --, as in assetlock run vm-1 -- ./patch.sh"
        )
    return _Run(cluster, ask, command, quiet).run(kill_after, on_lost == "kill", conflict_exit_code)


class _Run:
    """One run: acquire, supervise, release."""

    def __init__(
        self, cluster: _cluster.Cluster, ask: Callable[[str], Request], command: list[str], quiet: bool
    ) -> None:
        self._cluster = cluster
        self._ask = ask
        self._command = command
        self._quiet = quiet

    def run(self, kill_after: float | None, kill: bool, conflict_exit_code: int) -> int:
        """The exit code."""
        from assetlock.cli.running.signals import Interrupted, Signals
        from assetlock.client.session.requests import NotAcquired

        _require(self._command[0])
        signals = Signals()
        try:
            lock, term = self._acquire()
        except Interrupted as interrupted:
            return interrupted.exit_code
        except NotAcquired as error:
            _asking.conflict_code(error, conflict_exit_code)
            raise
        return self._hold(lock, term, signals, kill, kill_after)

    def _acquire(self) -> tuple[Lock, Term]:
        from assetlock.client.session.locks import Lock

        api, namespace = self._cluster.connect()
        lock = Lock(api, self._ask(namespace))
        return lock, lock.acquire(lambda text: None if self._quiet else _say(text))

    def _hold(self, lock: Lock, term: Term, signals: Signals, kill: bool, kill_after: float | None) -> int:
        signals.collecting = True
        try:
            from assetlock.cli.running.supervisor import Options, Supervisor
            from assetlock.client.session.keeper import Keeper

            keeper = Keeper(lock, term, notify=signals.wake, warn=_say)
            supervisor = Supervisor(keeper, signals, Options(kill, kill_after), _say)
            code = supervisor.run(self._command, {**os.environ, **_told(lock, term)})
        finally:
            _release(lock, term)
        if supervisor.died_of_interrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.killpg(os.getpgrp(), signal.SIGINT)  # the terminal has sent it to the command alone
        return code


def _require(program: str) -> None:
    """Nobody waits for a lock only to hear that there is no such command."""
    from assetlock.cli.running.group import NOT_EXECUTABLE, NOT_FOUND, CannotStart

    if shutil.which(program) is None:
        if "/" in program and pathlib.Path(program).exists():
            raise CannotStart(f"{program}: can't be executed", NOT_EXECUTABLE)
        raise CannotStart(f"{program}: command not found", NOT_FOUND)


def _told(lock: Lock, term: Term) -> dict[str, str]:
    """What the command finds in its environment."""
    return {
        "ASSETLOCK_ASSET": " ".join(lock.request.assets),
        "ASSETLOCK_TOKEN": " ".join(map(str, lock.tokens)),
        "ASSETLOCK_EXPIRES": term.expire_time,
        "ASSETLOCK_LOCK": lock.name,
        "ASSETLOCK_NAMESPACE": lock.request.namespace,
        _asking.HOLDER_ID_VARIABLE: lock.holder_id,
    }


def _release(lock: Lock, term: Term) -> None:
    from assetlock.client.api import ClientError

    try:
        lock.release(patience=LEAVING)
    except ClientError as error:
        _say(f"the lock could not be released and ends by itself after {term.expire_time}: {error}")


def _say(text: str) -> None:
    print(f"assetlock: {text}", file=sys.stderr, flush=True)
