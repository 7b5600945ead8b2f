"""What the shell offers at TAB: names from the cluster. Whatever goes wrong, nothing is offered and nothing said."""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from assetlock.client.api import Object

WITHIN: float = 2.0
"""Seconds for which a TAB may take."""

_MOST = 500
_ENDED = ("Released", "Expired", "Revoked", "Failed")


def assets(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Assets, each with its state."""
    from assetlock.client.api import ASSETS

    if ctx.meta.get("assetlock.command") is not None:
        return []  # what is typed belongs to the command to run
    given = {*_given(ctx)}
    return [
        CompletionItem(item["metadata"]["name"], help=item.get("status", {}).get("lockState", ""))
        for item in _listed(ctx, ASSETS.path, incomplete)
        if item["metadata"]["name"] not in given
    ]


def locks(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """AssetLocks that have not ended, each with its state."""
    from assetlock.client.api import ASSETLOCKS

    found = (
        (item, item.get("status", {}).get("state", "")) for item in _listed(ctx, ASSETLOCKS.path, incomplete)
    )
    return [
        CompletionItem(item["metadata"]["name"], help=state) for item, state in found if state not in _ENDED
    ]


def namespaces(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Namespaces."""
    listed = _listed(ctx, lambda _: "/api/v1/namespaces", incomplete)
    return [CompletionItem(item["metadata"]["name"]) for item in listed]


def contexts(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The kubeconfig's contexts."""
    from assetlock.client.api import ClientError
    from assetlock.client.api.config import kubeconfig_paths
    from assetlock.client.api.kubeconfig import context_names

    try:
        names = context_names(kubeconfig_paths(_kubeconfig(ctx)))
    except (ClientError, OSError, ValueError):
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _listed(ctx: click.Context, path: Any, incomplete: str) -> Iterator[Object]:
    from assetlock.cli._cluster import Cluster
    from assetlock.client.api import ClientError

    said = ctx.params
    cluster = Cluster(
        namespace=said.get("namespace"),
        context=said.get("context"),
        kubeconfig=_kubeconfig(ctx),
        user=said.get("as_user"),
        groups=said.get("as_groups") or (),
        timeout=WITHIN,
    )
    try:
        api, namespace = cluster.connect()
        items = api.get(path(namespace), {"limit": str(_MOST)})["items"]
    except (ClientError, OSError, KeyError):
        return
    yield from (item for item in items if item["metadata"]["name"].startswith(incomplete))


def _kubeconfig(ctx: click.Context) -> pathlib.Path | None:
    given = ctx.params.get("kubeconfig")
    return pathlib.Path(given) if given else None


def _given(ctx: click.Context) -> Iterable[str]:
    given = ctx.params.get("assets") or ctx.params.get("asset") or ()
    return (given,) if isinstance(given, str) else given
