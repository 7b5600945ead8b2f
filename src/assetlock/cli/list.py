"""``assetlock list`` and ``describe``: assets, who holds them, and who waits."""

from __future__ import annotations

import sys
from typing import Any

import click

from assetlock.cli import _cluster, _names, _table

_COLUMNS: tuple[_table.Column, ...] = (
    ("NAME", lambda asset: asset["metadata"]["name"]),
    ("TYPE", lambda asset: asset.get("spec", {}).get("type", "")),
    ("LOCK", lambda asset: _status(asset).get("lockState", "")),
    ("HOLDER", lambda asset: ", ".join(holder["identity"] for holder in _holders(asset))),
    ("UNTIL", lambda asset: _table.until(next((h.get("expireTime") for h in _holders(asset)), None))),
    ("QUEUE", lambda asset: str(_status(asset).get("queueLength", 0))),
    ("AGE", _table.age),
    ("+TOKEN", lambda asset: str(_status(asset).get("fencingToken", 0))),
    ("+REASON", lambda asset: ", ".join(h["reason"] for h in _holders(asset) if h.get("reason"))),
)
_NAMESPACE: _table.Column = ("NAMESPACE", lambda asset: asset["metadata"]["namespace"])


@click.command("list")
@click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces.")
@click.option("-l", "--selector", help="Only assets with these labels.")
@click.option("--locked", is_flag=True, help="Only assets that somebody holds.")
@_table.options
@_cluster.options
def list_assets(
    cluster: _cluster.Cluster,
    all_namespaces: bool,
    selector: str | None,
    locked: bool,
    output: str | None,
    no_headers: bool,
) -> None:
    """List assets, who holds them and until when, and how many wait."""
    from assetlock.client.api import ASSETS

    api, namespace = cluster.connect()
    pages = api.list_pages(
        ASSETS.path(None if all_namespaces else namespace), {"labelSelector": selector} if selector else None
    )
    found = [asset for page in pages for asset in page["items"]]
    if locked:
        found = [asset for asset in found if _status(asset).get("lockState", "Unlocked") != "Unlocked"]
    if not found and output is None:
        where = "" if all_namespaces else f" in namespace {namespace}"
        print(f"No assets found{where}.", file=sys.stderr)
        return
    columns = (_NAMESPACE, *_COLUMNS) if all_namespaces else _COLUMNS
    _table.show(found, columns, resource="asset.assetlock.dev", output=output, no_headers=no_headers)


@click.command()
@click.argument("asset", type=_names.ASSET)
@_cluster.options
def describe(cluster: _cluster.Cluster, asset: str) -> None:
    """Say what is known of ASSET: its targets, who holds it, who waits, and what is wrong with it."""
    from assetlock.client.api import ASSETS

    api, namespace = cluster.connect()
    for line in _described(api.get(ASSETS.path(namespace, asset))):
        click.echo(line)


def _described(asset: _table.Object) -> list[str]:
    meta, spec, status = asset["metadata"], asset.get("spec", {}), _status(asset)
    lines = [
        f"Name:      {meta['name']}",
        f"Namespace: {meta['namespace']}",
        f"Type:      {spec.get('type', '')}",
        f"Lock:      {status.get('lockState', 'Unknown')}, token {status.get('fencingToken', 0)}",
        "Targets:",
        *(f"  {target['kind']} {target.get('name') or 'by label'}" for target in spec.get("targets") or ()),
        "Holders:",
        *(f"  {_holder(holder)}" for holder in _holders(asset)),
        f"Queue:     {status.get('queueLength', 0)}",
        *(
            f"  {entry['identity']} ({entry['lock']}) since {entry.get('since', '?')}"
            for entry in status.get("queue") or ()
        ),
        "Conditions:",
        *(
            f"  {one['type']}={one['status']}  {one['reason']}  {one.get('message', '')}"
            for one in status.get("conditions") or ()
        ),
    ]
    return [line.rstrip() for line in lines]


def _holder(holder: _table.Object) -> str:
    lock = holder.get("lock") or "a Lease made by hand"
    reason = f" ({holder['reason']})" if holder.get("reason") else ""
    since, end = holder.get("acquireTime", "?"), _table.until(holder.get("expireTime"))
    return (
        f"{holder['identity']} with {lock}, token {holder['fencingToken']}, since {since} until {end}{reason}"
    )


def _status(asset: _table.Object) -> dict[str, Any]:
    return asset.get("status") or {}


def _holders(asset: _table.Object) -> list[dict[str, Any]]:
    return _status(asset).get("holders") or []
