"""`assetlock operator`: what the image runs: the processes, and a check that they do their work."""

from __future__ import annotations

import asyncio
import pathlib
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from assetlock.kube.config import ClusterConfig


@click.group()
def operator() -> None:
    """Run one of the operator's processes."""


_kubeconfig = click.option(
    "--kubeconfig",
    type=click.Path(path_type=pathlib.Path, exists=True, dir_okay=False),
    help="Default: $KUBECONFIG, else ~/.kube/config, else the ServiceAccount of the pod.",
)


@operator.command()
@_kubeconfig
def controller(kubeconfig: pathlib.Path | None) -> None:
    """Run the controller: it grants, queues and expires locks, and fences targets."""
    from assetlock.cli import logs
    from assetlock.controller.main import run
    from assetlock.controller.settings import Settings
    from assetlock.kube.config import load_config

    logs.configure()
    asyncio.run(run(lambda: load_config(kubeconfig), Settings()))


@operator.command()
@_kubeconfig
@click.option("--host", default="0.0.0.0", show_default=True, help="The address to serve the webhooks on.")  # noqa: S104
@click.option("--port", default=9443, show_default=True, help="Their port.")
def admission(kubeconfig: pathlib.Path | None, host: str, port: int) -> None:
    """Run the admission webhooks: they refuse writes with 423, and record holders and times."""
    from assetlock.admission.main import run
    from assetlock.cli import logs

    logs.configure()
    asyncio.run(run(kubeconfig, host, port))


@operator.command()
@_kubeconfig
@click.option("--host", default="0.0.0.0", show_default=True, help="The address to serve on.")  # noqa: S104
@click.option("--port", default=8080, show_default=True, help="The port.")
def http(kubeconfig: pathlib.Path | None, host: str, port: int) -> None:
    """Serve the HTTP API."""
    from assetlock.cli import logs
    from assetlock.web.main import run

    logs.configure()
    asyncio.run(run(kubeconfig, host, port))


@operator.command()
@_kubeconfig
@click.option("-n", "--namespace", help="Where to try it. Default: the kubeconfig's, or the pod's.")
@click.option(
    "--timeout", default=60.0, show_default=True, help="Seconds within which all of it must happen."
)
def verify(kubeconfig: pathlib.Path | None, namespace: str | None, timeout: float) -> None:
    """Lock a ConfigMap that is made for it, see it stamped and freed, and remove it again."""
    from assetlock.kube.config import load_config

    config = load_config(kubeconfig)
    where = namespace or config.namespace
    try:
        asyncio.run(_verify(config, where, timeout))
    except TimeoutError:
        raise click.ClickException(f"not done within {timeout:g} s; see the log of the controller") from None


async def _verify(config: ClusterConfig, namespace: str, timeout: float) -> None:
    from assetlock.cli._verifying import verify
    from assetlock.kube.api import Api
    from assetlock.kube.http import HttpTransport

    api = Api(HttpTransport(config))
    try:
        await verify(api, namespace, timeout)
    finally:
        await api.close()
