"""``assetlock uninstall``: takes assetlock out of a cluster, and leaves nothing that blocks a write."""

from __future__ import annotations

import asyncio
import os
import pathlib

import click

from assetlock.cli import _options


class _Unfinished(click.ClickException):
    """Something is left."""

    exit_code = os.EX_TEMPFAIL


@click.command()
@_options.kubeconfig
@click.option(
    "--operator-namespace",
    metavar="NAMESPACE",
    envvar="ASSETLOCK_NAMESPACE",
    default="assetlock-system",
    show_default=True,
    help="Where the operator is installed.",
)
@click.option(
    "--keep-definitions",
    is_flag=True,
    help="Keep the kinds, every Asset, and every MaintenanceWindow (suspended).",
)
@click.option(
    "--locks-only",
    is_flag=True,
    help="End locks, free targets, remove policies, webhooks and the controller; Helm removes the rest.",
)
def uninstall(
    kubeconfig: pathlib.Path | None, operator_namespace: str, keep_definitions: bool, locks_only: bool
) -> None:
    """End every lock, free every target, and remove assetlock from the cluster.

    It works with and without a running operator, and may be interrupted and repeated. You need to be cluster-admin.
    """
    from assetlock.uninstall import UninstallError

    try:
        asyncio.run(_uninstall(kubeconfig, operator_namespace, not keep_definitions, locks_only))
    except UninstallError as error:
        raise _Unfinished(str(error)) from None


async def _uninstall(
    kubeconfig: pathlib.Path | None, namespace: str, definitions: bool, locks_only: bool
) -> None:
    from assetlock.kube.api import Api
    from assetlock.kube.config import load_config
    from assetlock.kube.http import HttpTransport
    from assetlock.uninstall import end_locks, remove

    api = Api(HttpTransport(load_config(kubeconfig)))
    try:
        await end_locks(api, namespace, click.echo)
        if not locks_only:
            await remove(api, namespace, click.echo, definitions=definitions)
    finally:
        await api.close()
