"""One run: a cluster, clients, troubles; then a quiet while, and what came of it, seen from two sides.

The clients' own history goes to the checker; what etcd has stored is walked revision by revision.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import time
from collections.abc import Coroutine, Iterator
from typing import Any

from tests.chaos import faults
from tests.chaos.audit import Audit, Auditor
from tests.chaos.checker import check
from tests.chaos.clients import NAMESPACE, Client, Log, Stranger
from tests.chaos.cluster import Cluster, cluster
from tests.chaos.etcd import revisions
from tests.chaos.faults import Fault
from tests.chaos.history import Grant, Operation, complete, hurried
from tests.chaos.work import at_work

ASSETS = ("vm-1", "vm-2")
CLIENTS = 4
MOST_QUIET = 120.0
"""Seconds without trouble at the end, in which each asset must come to be granted again: those in line who are no
more must first be waited for, or hold until their term is over."""

_FENCE = ("fence.assetlock.dev",)


@dataclasses.dataclass
class Outcome:
    """What happened, when, and what is to be said about it. Times are nanoseconds from the same clock."""

    seed: str
    began: int
    ended: int
    quiet_from: int
    faults: list[Fault]
    grants: list[Grant]
    operations: list[Operation]
    verdicts: list[dict[str, Any]]
    audit: Audit

    @property
    def complaints(self) -> list[str]:
        """All that is not as it must be."""
        found = [
            f"{v['asset']}: {v['result']}, stuck at {v['stuck']}"
            for v in self.verdicts
            if v["result"] != "Ok"
        ]
        idle = _idle(self.grants, self.quiet_from)
        return (
            found
            + self.audit.broken
            + [f"{asset}: nobody was granted it after the troubles" for asset in idle]
        )


async def play(seconds: float, seed: str, *, troubled: bool = True, fenced: bool = True) -> Outcome:
    """Run for so long, and judge."""
    async with cluster() as running:
        await asyncio.to_thread(_prepare, running, fenced)
        log, made = Log(), list[Fault]()
        began = time.monotonic_ns()
        async with at_work(_people(running, log, seed)):
            if troubled:
                await faults.make_trouble(running, seconds, seed, made)
            else:
                await asyncio.sleep(seconds)
            quiet_from = time.monotonic_ns()
            await _all_served(log.grants, quiet_from)
        ended = time.monotonic_ns()
        await asyncio.to_thread(_learn_tokens, running, log.grants)
        audit = Auditor().walk(await revisions(running, "/registry/"))
    hurried(log.grants, [(f.began, f.ended) for f in made if f.name.startswith(faults.CLOCK)])
    verdicts = await asyncio.to_thread(check, complete(log.operations, log.grants))
    return Outcome(seed, began, ended, quiet_from, made, log.grants, log.operations, verdicts, audit)


def _people(running: Cluster, log: Log, seed: str) -> Iterator[Coroutine[Any, Any, None]]:
    """The clients, and who starts ended processes again."""
    yield running.keep()
    for asset in ASSETS:
        for number in range(CLIENTS):
            yield Client(running, log, asset, f"{asset}-client-{number}", seed).run()
        yield Stranger(running, log, asset, f"{asset}-stranger", seed).run()


async def _all_served(grants: list[Grant], since: int) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MOST_QUIET):
            while _idle(grants, since):  # noqa: ASYNC110
                await asyncio.sleep(0.5)


def _idle(grants: list[Grant], since: int) -> list[str]:
    """The assets that nobody was granted since then."""
    served = {grant.asset for grant in grants if (grant.told or 0) > since}
    return [asset for asset in ASSETS if asset not in served]


def _prepare(running: Cluster, fenced: bool) -> None:
    kubectl = running.access.kubectl
    kubectl("create", "namespace", NAMESPACE)
    for asset in ASSETS:
        kubectl("create", "configmap", asset, "--from-literal=value=", "-n", NAMESPACE)
        target = {"apiVersion": "v1", "kind": "ConfigMap", "name": asset}
        body = {
            "apiVersion": "assetlock.dev/v1alpha1",
            "kind": "Asset",
            "metadata": {"name": asset},
            "spec": {
                "type": "VM",
                "targets": [target],
                "enforcement": "Required" if fenced else "Advisory",
            },
        }
        kubectl("create", "-f", "-", "-n", NAMESPACE, stdin=json.dumps(body))
        kubectl("wait", f"ast/{asset}", "--for=condition=Ready", "--timeout=30s", "-n", NAMESPACE)
    if not fenced:
        _take_the_fence_down(running)


def _take_the_fence_down(running: Cluster) -> None:
    kubectl = running.access.kubectl
    kubectl("delete", "validatingadmissionpolicybinding", "assetlock-targets")
    found = json.loads(kubectl("get", "mutatingwebhookconfiguration", "assetlock", "-o", "json").stdout)
    found["webhooks"] = [one for one in found["webhooks"] if one["name"] not in _FENCE]
    kubectl("replace", "-f", "-", stdin=json.dumps(found))


def _learn_tokens(running: Cluster, grants: list[Grant]) -> None:
    """Whoever lost the answer of an acquisition is told now which token it got, if any."""
    found = json.loads(running.access.kubectl("get", "assetlocks", "-o", "json", "-n", NAMESPACE).stdout)
    tokens = {lock["metadata"]["name"]: lock.get("status", {}).get("fencingToken") for lock in found["items"]}
    for grant in grants:
        grant.token = grant.token or tokens.get(grant.lock)
