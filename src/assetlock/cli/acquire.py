"""``assetlock acquire``, ``release`` and ``extend``: a lock for scripts that can't be one command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from assetlock.cli import _asking, _cluster, _names

if TYPE_CHECKING:
    from assetlock.client.session.requests import Request


@click.command()
@click.argument("assets", nargs=-1, required=True, type=_names.ASSET, metavar="ASSET...")
@_asking.options
@_cluster.options
def acquire(
    cluster: _cluster.Cluster,
    ask: Callable[[str], Request],
    conflict_exit_code: int,
    quiet: bool,
) -> int:
    """Acquire the lock on ASSET, or on several assets together, and print the name of the AssetLock.

    The lock lasts for its ttl, unless it is extended: nothing renews it. Release it with the name that is printed.

    \b
        lock=$(assetlock acquire vm-1 --ttl 30m --wait 10m) || exit
        trap 'assetlock release "$lock"' EXIT
    """
    from assetlock.cli.running.signals import Interrupted, Signals
    from assetlock.client.session.locks import Lock
    from assetlock.client.session.requests import NotAcquired

    Signals()
    try:
        api, namespace = cluster.connect()
        lock = Lock(api, ask(namespace))
        lock.acquire(lambda text: None if quiet else _say(text))
    except Interrupted as interrupted:
        return interrupted.exit_code
    except NotAcquired as error:
        _asking.conflict_code(error, conflict_exit_code)
        raise
    click.echo(lock.name)
    return os.EX_OK


@click.command()
@click.argument("locks", nargs=-1, required=True, type=_names.LOCK, metavar="LOCK...")
@_cluster.options
def release(cluster: _cluster.Cluster, locks: tuple[str, ...]) -> int:
    """Release LOCK, which is the name that `acquire` has printed.

    A lock that is gone already is no failure. One that was lost meanwhile is: exit code 76.
    """
    from assetlock.client.session.named import release_named

    api, namespace = cluster.connect()
    code = os.EX_OK
    for name in locks:
        ended = release_named(api, namespace, name)
        _say(ended.message)
        code = code or ended.exit_code
    return code


@click.command()
@click.argument("lock", type=_names.LOCK, metavar="LOCK")
@click.option("--ttl", type=_names.Duration(1.0), help="Its length from now on. Default: as it was.")
@_cluster.options
def extend(cluster: _cluster.Cluster, lock: str, ttl: str | None) -> None:
    """Let LOCK last another ttl from now, and print until when."""
    from assetlock.client.session.named import extend_named

    api, namespace = cluster.connect()
    click.echo(extend_named(api, namespace, lock, ttl))


def _say(text: str) -> None:
    print(f"assetlock: {text}", file=sys.stderr, flush=True)
