"""What ``assetlock revoke --offline`` does and prints: all of the operator's steps, while none runs."""

from __future__ import annotations

import asyncio

import click

from assetlock.controller.clock import SystemClock
from assetlock.controller.events import EventPublisher
from assetlock.controller.keys import AssetKey
from assetlock.controller.leadership import present_leader
from assetlock.controller.reconcile.offline_revoke import revoke
from assetlock.core.decision import (
    CreateLease,
    DeleteLease,
    PatchNamespace,
    PatchTarget,
    ReplaceLease,
    Write,
    WriteAssetStatus,
    WriteLockStatus,
)
from assetlock.kube.api import Api
from assetlock.kube.errors import Forbidden
from assetlock.kube.recorder import EventRecorder


async def take_down(api: Api, namespace: str, asset: str, by: str) -> list[str]:
    """End what holds the asset without an operator, and print each step; gives what is left, and why."""
    clock = SystemClock()
    try:
        leader = await present_leader(api, clock)
    except Forbidden as error:
        click.echo(
            f"whether an operator runs can't be seen ({error}); going on, which does no harm", err=True
        )
        leader = None
    if leader is not None:
        raise click.UsageError(f"an operator runs ({leader}), and does all this by itself: omit --offline")
    recorder = EventRecorder(api, "assetlock-revoke")
    telling = asyncio.create_task(recorder.run())
    try:
        key = AssetKey(namespace, asset)
        left = await revoke(
            api, clock, key, by, EventPublisher(recorder), lambda _, write: click.echo(_step(write))
        )
        await recorder.drain()
        return left
    finally:
        telling.cancel()


def _step(write: Write) -> str:
    """A step that was made, for people."""
    match write:
        case WriteLockStatus(body=body):
            return f"AssetLock {body['metadata']['name']}: {body['status']['state']}"
        case DeleteLease(name=name):
            return f"Lease {name}: deleted"
        case CreateLease(body=body) | ReplaceLease(body=body):
            return f"Lease {body['metadata']['name']}: kept from everybody for the asset's lockDelay"
        case WriteAssetStatus(body=body):
            token = body["status"]["fencingToken"]
            return f"Asset {body['metadata']['name']}: no holder; the fencing token stays {token}"
        case PatchTarget(target=observed):
            return f"{observed.target.kind} {observed.target.name}: stamp removed"
        case PatchNamespace(namespace=space):
            return f"Namespace {space.name}: guard removed"
        case _:
            return type(write).__name__
