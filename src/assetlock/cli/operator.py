"""`assetlock operator`: the two processes that the image runs."""

from __future__ import annotations

import asyncio
import pathlib

import click


@click.group()
def operator() -> None:
    """Run one of the operator's processes."""


_kubeconfig = click.option(
    "--kubeconfig",
    type=click.Path(path_type=pathlib.Path, exists=True, dir_okay=False),
    envvar="KUBECONFIG",
    help="Default: $KUBECONFIG, else the ServiceAccount of the pod.",
)


@operator.command()
@_kubeconfig
def controller(kubeconfig: pathlib.Path | None) -> None:
    """Grant, queue, expire and fence: reconciles Assets, AssetLocks and Leases."""
    from assetlock.cli import logs
    from assetlock.controller.leadership import LeadershipLost
    from assetlock.controller.main import run
    from assetlock.controller.settings import Settings
    from assetlock.kube.config import load_config

    logs.configure()
    try:
        asyncio.run(run(load_config(kubeconfig), Settings()))
    except* LeadershipLost as lost:
        raise click.ClickException(str(lost.exceptions[0])) from None


@operator.command()
@_kubeconfig
@click.option("--host", default="0.0.0.0", show_default=True, help="The address to serve the webhooks on.")  # noqa: S104
@click.option("--port", default=9443, show_default=True, help="Their port.")
def admission(kubeconfig: pathlib.Path | None, host: str, port: int) -> None:
    """Refuse strangers with 423, stamp who asks, keep times honest: serves the webhooks."""
    from assetlock.admission.main import run
    from assetlock.cli import logs

    logs.configure()
    asyncio.run(run(kubeconfig, host, port))
