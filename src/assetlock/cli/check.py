"""``assetlock check``: whether locks are served here, for pipelines and charts that have to wait for that."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from assetlock.cli import _cluster, _names

if TYPE_CHECKING:
    from assetlock.client.api import Api

_PAUSE = 1.0


@click.command()
@click.option(
    "--wait", "patience", type=_names.Seconds(), default="0s", show_default=True, help="How long to try."
)
@_cluster.options
def check(cluster: _cluster.Cluster, patience: float) -> None:
    """Check that this cluster serves locks: the resources, the webhook and its certificate, and the policies.

    A lock is created as a trial (a dry run), in your name: nothing is stored. That you may not lock is no failure.
    """
    from assetlock.client.api import ClientError

    api, namespace = cluster.connect()
    deadline = time.monotonic() + patience
    while True:
        try:
            _try(api, namespace)
        except ClientError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE)
        else:
            click.echo("assetlock is ready")
            return


def _try(api: Api, namespace: str) -> None:
    from assetlock.client.api import ASSETLOCKS, ClientError, Forbidden
    from assetlock.client.session.locks import explained
    from assetlock.client.session.requests import Request, new_name

    body = Request(namespace, ("assetlock-check",)).body(new_name(("assetlock-check",)))
    try:
        api.create(ASSETLOCKS.path(namespace), body, params={"dryRun": "All"})
    except Forbidden:
        return  # by RBAC or by a policy of ours: both answer
    except ClientError as error:
        raise explained(error) from error
