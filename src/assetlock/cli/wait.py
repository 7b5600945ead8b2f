"""``assetlock wait``: waits until an asset is free, or held. It takes no place in the queue."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from assetlock.cli import _cluster, _names

if TYPE_CHECKING:
    from assetlock.client.api import Api, Object

_PAUSE = 1.0
_LONGEST_WATCH = 60


class _TimedOut(click.ClickException):
    exit_code = os.EX_TEMPFAIL


@click.command()
@click.argument("asset", type=_names.ASSET)
@click.option(
    "--for",
    "wanted",
    type=click.Choice(("free", "held")),
    default="free",
    show_default=True,
    help="What to wait for.",
)
@click.option("--timeout", type=_names.Seconds(), default="10m", show_default=True, help="How long.")
@_cluster.options
def wait(cluster: _cluster.Cluster, asset: str, wanted: str, timeout: float) -> None:
    """Wait until ASSET is free, or held by somebody. Exit code 75 if it does not come to that.

    Another may be faster when it is free: to get the lock, wait with `acquire --wait` or `run --wait`.
    """
    api, namespace = cluster.connect()
    seen = _wait(api, namespace, asset, free=wanted == "free", until=time.monotonic() + timeout)
    state = _state(seen)
    click.echo(f"asset {asset} is {'free' if state == 'Unlocked' else state.lower()}")


def _wait(api: Api, namespace: str, asset: str, *, free: bool, until: float) -> Object:
    from assetlock.client.api import ASSETS, AnswerLost, ApiError, Unreachable

    seen = api.get(ASSETS.path(namespace, asset))
    while (_state(seen) == "Unlocked") != free:
        left = until - time.monotonic()
        if left <= 0:
            raise _TimedOut(f"asset {asset} is still {_state(seen).lower()}{_by(seen)}")
        try:
            params = {"fieldSelector": f"metadata.name={asset}"}
            params["resourceVersion"] = seen["metadata"]["resourceVersion"]
            seconds = max(1, min(_LONGEST_WATCH, int(left)))
            for _, seen in api.watch(ASSETS.path(namespace), params, seconds=seconds):
                if (_state(seen) == "Unlocked") == free:
                    return seen
        except (AnswerLost, Unreachable, ApiError):
            time.sleep(_PAUSE)
        seen = api.get(ASSETS.path(namespace, asset))
    return seen


def _state(asset: Object) -> str:
    return str((asset.get("status") or {}).get("lockState", "Unlocked"))


def _by(asset: Object) -> str:
    holders = asset["status"].get("holders") or ()
    return "".join(
        f" by {holder['identity']} until {holder.get('expireTime', '?')}" for holder in holders[:1]
    )
