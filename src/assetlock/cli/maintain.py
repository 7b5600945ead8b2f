"""``assetlock maintain``: closes an asset for a while, so that nobody's automation writes to it; and opens it."""

from __future__ import annotations

import asyncio
import os
import pathlib
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from assetlock.cli import _options

if TYPE_CHECKING:
    from assetlock.kube.api import Api
    from assetlock.kube.config import ClusterConfig

PRESETS = ("5m", "15m", "30m", "1h", "2h", "4h", "8h", "12h", "24h")
"""What people mostly ask for; any other length will do as well."""

ANSWERED_WITHIN = 10.0
PAUSE = 0.2


class _NotClosed(click.ClickException):
    """The asset is not closed, at least not yet."""

    exit_code = os.EX_TEMPFAIL


class _Length(click.ParamType[str]):
    name = "length"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from assetlock.model.durations import parse_duration

        try:
            length = parse_duration(value)
        except ValueError as error:
            self.fail(f"{error}; for instance {', '.join(PRESETS)}", param, ctx)
        if not length:
            self.fail(f"{value} is too short: it must be longer than zero", param, ctx)
        return str(value)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        return [CompletionItem(preset) for preset in PRESETS if preset.startswith(incomplete)]


@click.command()
@_options.asset
@_options.namespace
@_options.context
@_options.kubeconfig
@click.option(
    "--for",
    "length",
    type=_Length(),
    default="1h",
    show_default=True,
    help=f"How long: {', '.join(PRESETS)}, or any other length.",
)
@click.option("--reason", help="Why; whoever is refused sees it.")
@click.option(
    "--maintainer", "maintainers", multiple=True, help="A user who may write meanwhile; repeatable."
)
@click.option("--revoke", is_flag=True, help="End the lock that somebody has. Default: wait for its end.")
@click.option("--end", is_flag=True, help="End your own maintenance of the asset.")
def maintain(
    asset: str,
    namespace: str | None,
    context: str | None,
    kubeconfig: pathlib.Path | None,
    length: str,
    reason: str | None,
    maintainers: tuple[str, ...],
    revoke: bool,
    end: bool,
) -> None:
    """Put ASSET under maintenance: nobody writes to it, your own automation included.

    This needs the verb "maintain" on the asset, --revoke also "unlock".
    """
    from assetlock.kube.config import load_config

    config = load_config(kubeconfig, context)
    where = namespace or config.namespace
    if end:
        asyncio.run(_end(config, where, asset))
        return
    spec: dict[str, Any] = {
        "assetName": asset,
        "mode": "Maintenance",
        "ttl": length,
        "whenHeld": "Revoke" if revoke else "Wait",
        "maintainers": [{"kind": "User", "name": name} for name in maintainers],
    }
    asyncio.run(_close(config, where, spec if reason is None else {**spec, "reason": reason}))


async def _close(config: ClusterConfig, namespace: str, spec: dict[str, Any]) -> None:
    from assetlock.cli import _assets
    from assetlock.kube.api import Api
    from assetlock.kube.http import HttpTransport
    from assetlock.kube.resources import ASSETLOCKS

    asset = spec["assetName"]
    api = Api(HttpTransport(config))
    try:
        await _assets.ensure(api, namespace, asset)
        body = {
            "apiVersion": ASSETLOCKS.api_version,
            "kind": ASSETLOCKS.kind,
            "metadata": {"generateName": f"maintenance-{asset}-"},
            "spec": spec,
        }
        name = (await api.create(ASSETLOCKS, namespace, body))["metadata"]["name"]
        _tell(asset, name, await _answer(api, namespace, name))
    finally:
        await api.close()


async def _answer(api: Api, namespace: str, name: str) -> dict[str, Any]:
    """The lock's status once the operator has looked at it, as far as it is known when the time for that is over."""
    from assetlock.kube.resources import ASSETLOCKS

    deadline = asyncio.get_running_loop().time() + ANSWERED_WITHIN
    while True:
        status: dict[str, Any] = (await api.get(ASSETLOCKS, namespace, name)).get("status", {})
        late = asyncio.get_running_loop().time() > deadline
        if late or status.get("state") not in (None, "Pending") or status.get("waitsFor"):
            return status
        await asyncio.sleep(PAUSE)


def _tell(asset: str, name: str, status: dict[str, Any]) -> None:
    state = status.get("state")
    if state == "Held":
        click.echo(f"asset {asset} is under maintenance until {status.get('expireTime')} (AssetLock {name})")
        return
    if state not in (None, "Pending"):
        why = next((c["message"] for c in status.get("conditions", ()) if c["type"] == "Settled"), state)
        raise _NotClosed(f"asset {asset} is not under maintenance: {why}")
    if state is None:
        raise _NotClosed(
            f"no answer in {ANSWERED_WITHIN:g} s; AssetLock {name} takes effect once the controller processes it"
        )
    waits = status.get("waitsFor") or "its turn"
    click.echo(
        f"maintenance of asset {asset} begins when {waits} is done (AssetLock {name}); "
        f"to take that back: assetlock maintain {asset} --end"
    )


async def _end(config: ClusterConfig, namespace: str, asset: str) -> None:
    from assetlock.cli import _assets
    from assetlock.kube import reviews
    from assetlock.kube.api import Api
    from assetlock.kube.http import HttpTransport
    from assetlock.kube.resources import ASSETLOCKS

    api = Api(HttpTransport(config))
    try:
        await _assets.ensure(api, namespace, asset)
        me = (await reviews.myself(api)).username
        locks = (await api.list(ASSETLOCKS, namespace)).items
        mine = [lock for lock in locks if _is_maintenance_by(me, asset, lock)]
        for lock in mine:
            meta = lock["metadata"]
            await api.delete(
                ASSETLOCKS, namespace, meta["name"], uid=meta["uid"], resource_version=meta["resourceVersion"]
            )
            click.echo(f"ended AssetLock {meta['name']}")
        if not mine:
            click.echo(f"{me} has no maintenance on asset {asset} in namespace {namespace}")
    finally:
        await api.close()


def _is_maintenance_by(user: str, asset: str, lock: dict[str, Any]) -> bool:
    spec = lock["spec"]
    concerns = spec.get("assetName") == asset and spec.get("mode") == "Maintenance"
    lives = lock.get("status", {}).get("state") in (None, "Pending", "Held")
    return concerns and lives and spec.get("holder", {}).get("username") == user
