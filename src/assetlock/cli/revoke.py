"""``assetlock revoke``: ends the lock that others hold on an asset, with the operator's help or, offline, without."""

from __future__ import annotations

import asyncio
import os
import pathlib
from typing import TYPE_CHECKING

import click

from assetlock.cli import _options

if TYPE_CHECKING:
    from assetlock.kube.config import ClusterConfig


class _Unfinished(click.ClickException):
    """Something of the lock is left."""

    exit_code = os.EX_TEMPFAIL


@click.command()
@_options.asset
@_options.namespace
@_options.context
@_options.kubeconfig
@click.option(
    "--offline",
    is_flag=True,
    help="Without an operator: take the fence down with your own rights, in the group assetlock:break-glass.",
)
def revoke(
    asset: str,
    namespace: str | None,
    context: str | None,
    kubeconfig: pathlib.Path | None,
    offline: bool,
) -> None:
    """End the lock that others hold on ASSET, and say whose it was.

    This needs the verb "unlock" on the asset, and the right to patch its Lease. The next in line gets the lock, after
    the asset's lockDelay. If it is free already, nothing happens.

    While no operator runs nobody takes the fence down: --offline does it, step by step, and may be repeated.
    """
    from assetlock.kube.config import load_config

    config = load_config(kubeconfig, context)
    where = namespace or config.namespace
    asyncio.run(_offline(config, where, asset) if offline else _online(config, where, asset))


async def _online(config: ClusterConfig, namespace: str, asset: str) -> None:
    from assetlock.cli import _assets
    from assetlock.kube.api import Api
    from assetlock.kube.http import HttpTransport
    from assetlock.operations import revoke as revoking

    api = Api(HttpTransport(config))
    try:
        await _assets.ensure(api, namespace, asset)
        ended = await revoking.end_acquisitions(api, namespace, asset)
        for claim in ended:
            click.echo(f"revoked {revoking.whose(claim)}")
        if not ended:
            click.echo(f"nobody holds asset {asset} in namespace {namespace}")
        elif not await revoking.is_over(api, namespace, asset, ended):
            raise _Unfinished(
                "no operator acts on it, so the fence stays; start one, or take it down with --offline"
            )
    finally:
        await api.close()


async def _offline(config: ClusterConfig, namespace: str, asset: str) -> None:
    from assetlock.cli import _offline_revoke
    from assetlock.core import names
    from assetlock.kube.api import Api
    from assetlock.kube.http import HttpTransport
    from assetlock.kube.impersonation import in_group

    acting, me = await in_group(config, names.BREAK_GLASS_GROUP)
    click.echo(f"acting as {me.username} in the groups {', '.join(me.groups)}")
    api = Api(HttpTransport(acting))
    try:
        left = await _offline_revoke.take_down(api, namespace, asset, me.username)
    finally:
        await api.close()
    for why in left:
        click.echo(f"left: {why}", err=True)
    if left:
        raise _Unfinished(f"asset {asset} in namespace {namespace} is not free yet")
    click.echo(f"asset {asset} in namespace {namespace} is free")
