"""``assetlock why``: which lock is in the way of an object. People know objects, not assets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from assetlock.cli import _cluster
from assetlock.cli._kinds import Kind, targeted

if TYPE_CHECKING:
    from assetlock.client.api import Api, Object


@click.command()
@click.argument("object_", metavar="OBJECT")
@_cluster.options
def why(cluster: _cluster.Cluster, object_: str) -> None:
    """Say which lock is in the way of OBJECT, which is KIND/NAME as for kubectl: deployment/web.

    It says who holds the lock, since when, until when, and what to do.
    """
    word, slash, name = object_.partition("/")
    if not (word and slash and name):
        raise click.UsageError(f"{object_!r}: an object is KIND/NAME, such as deployment/web")
    api, namespace = cluster.connect()
    assets = _assets(api, namespace)
    kinds = [kind for kind in targeted(api, assets) if word.lower() in kind.words]
    if not kinds:
        click.echo(f"nothing is in the way: no asset that you may see has targets of the kind {word}")
        return
    for kind in kinds:
        found = api.get(kind.path(namespace, name))
        told = list(_in_the_way(found, assets))
        title = f"{kind.kind} {name}"
        for line in told or [_free(found, kind, assets)]:
            click.echo(f"{title} {line}")


def _assets(api: Api, namespace: str) -> list[Object]:
    """Those of all namespaces, as targets may be elsewhere; else those of this one."""
    from assetlock.client.api import ASSETS, Forbidden

    try:
        return [asset for page in api.list_pages(ASSETS.path(None)) for asset in page["items"]]
    except Forbidden:
        return [asset for page in api.list_pages(ASSETS.path(namespace)) for asset in page["items"]]


def _in_the_way(found: Object, assets: list[Object]) -> Iterator[str]:
    """A sentence for each asset that claims the object."""
    from assetlock.core import names
    from assetlock.core.fence.stamp import stamp_of

    meta = found["metadata"]
    annotations = meta.get("annotations") or {}
    for key in annotations:
        stamp, claimant = stamp_of(annotations, key, meta["uid"]), names.claimant(key)
        if stamp is None or claimant is None:
            continue
        namespace, asset = claimant
        holders = _holders(assets, asset, namespace) or [f"{one.identity.username}" for one in stamp.told]
        yield (
            f"is locked through asset {asset} in namespace {namespace}: held by {', '.join(holders)}. "
            f"Wait until then, or queue for it: assetlock run {asset} -n {namespace} --wait 30m -- COMMAND"
        )


def _holders(assets: list[Object], name: str, namespace: str) -> list[str]:
    for asset in assets:
        if (asset["metadata"]["name"], asset["metadata"]["namespace"]) == (name, namespace):
            return [_told(holder) for holder in (asset.get("status") or {}).get("holders") or ()]
    return []


def _told(holder: dict[str, Any]) -> str:
    reason = f" ({holder['reason']})" if holder.get("reason") else ""
    return f"{holder['identity']} since {holder.get('acquireTime')} until {holder.get('expireTime')}{reason}"


def _free(found: Object, kind: Kind, assets: list[Object]) -> str:
    """What there is to say of an object that nobody has locked."""
    meta = found["metadata"]
    claiming = [
        f"{asset['metadata']['name']} in namespace {asset['metadata']['namespace']}"
        for asset in assets
        for target in asset.get("spec", {}).get("targets", ())
        if (target["apiVersion"], target["kind"], target.get("name"))
        == (kind.api_version, kind.kind, meta["name"])
        and target.get("namespace", asset["metadata"]["namespace"]) == meta.get("namespace")
    ]
    if not claiming:
        return "is not locked"
    return f"is not locked; it is a target of asset {', '.join(claiming)}"
