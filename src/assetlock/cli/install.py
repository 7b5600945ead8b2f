"""``assetlock install``: puts resources, rights, policies and webhooks into a cluster."""

from __future__ import annotations

import asyncio
import pathlib

import click

from assetlock.cli import _options


@click.command()
@_options.kubeconfig
@click.option(
    "--image", help="Run both processes in the cluster, from this image; default: they run elsewhere."
)
@click.option(
    "--webhook-url",
    metavar="URL",
    help="Where the API server reaches the webhooks, such as https://127.0.0.1:9443; "
    "default: the Service in the cluster.",
)
@click.option(
    "--ca-bundle",
    type=click.Path(path_type=pathlib.Path, exists=True, dir_okay=False),
    help="The CA (PEM) of the webhooks' certificate, if you bring your own.",
)
def install(
    kubeconfig: pathlib.Path | None,
    image: str | None,
    webhook_url: str | None,
    ca_bundle: pathlib.Path | None,
) -> None:
    """Install or update assetlock in the cluster. Doing it twice changes nothing."""
    from assetlock.install import InstallError
    from assetlock.kube.errors import KubeError

    if webhook_url is not None and not webhook_url.startswith("https://"):
        raise click.BadParameter("the API server calls webhooks by https only", param_hint="--webhook-url")
    trusted = ca_bundle.read_text("ascii") if ca_bundle else None
    try:
        applied = asyncio.run(_install(kubeconfig, image, webhook_url, trusted))
    except (InstallError, KubeError) as error:
        raise click.ClickException(str(error)) from None
    for title in applied:
        click.echo(f"applied {title}")


async def _install(
    kubeconfig: pathlib.Path | None, image: str | None, webhook_url: str | None, ca_bundle: str | None
) -> list[str]:
    from assetlock.install import install as apply
    from assetlock.kube.api import Api
    from assetlock.kube.config import load_config
    from assetlock.kube.http import HttpTransport

    api = Api(HttpTransport(load_config(kubeconfig)))
    try:
        return await apply(api, image=image, webhook_url=webhook_url, ca_bundle=ca_bundle)
    finally:
        await api.close()
