"""Run every scenario on control planes of its own, print the table, write ``build/bench.json``."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import sys
from collections.abc import AsyncIterator, Iterator

from assetlock.cli import stack
from assetlock.dev import ControlPlane
from assetlock.kube.api import Api
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from benchmarks import fenced, pods, rows, scenarios
from benchmarks.bench import NAMESPACE, Bench
from benchmarks.storm import Storm

REPORT = pathlib.Path("build/bench.json")


@contextlib.asynccontextmanager
async def _bench(cluster: ControlPlane) -> AsyncIterator[Bench]:
    """A client of the administrator's."""
    api = Api(HttpTransport(load_config(cluster.kubeconfig)))
    try:
        yield Bench(api)
    finally:
        await api.close()


async def _beside_a_plain_cluster(cluster: ControlPlane, plain: ControlPlane) -> rows.Row:
    async with _bench(cluster) as ours, _bench(plain) as theirs:
        return await scenarios.unlocked_write(ours, theirs)


async def _alone(cluster: ControlPlane) -> list[rows.Row]:
    taken = []
    async with _bench(cluster) as bench, scenarios.watching(bench):
        for scenario in (
            scenarios.grant,
            scenarios.handover,
            scenarios.throughput,
            scenarios.long_line,
            pods.beside_pods,
        ):
            print(f"measuring: {scenario.__name__}", file=sys.stderr)
            taken.append(await scenario(bench))
    return taken


async def _fenced(cluster: ControlPlane) -> list[rows.Row]:
    async with _bench(cluster) as bench, scenarios.watching(bench):
        print("measuring: writes among a thousand locked objects", file=sys.stderr)
        names = await fenced.lock_many(bench)
        stranger = cluster.kubeconfig_for("stranger", "system:masters")
        taken = await fenced.holder_write(bench, names)
        taken.append(await fenced.in_a_storm(bench, Storm(stranger, names), names))
        cluster.kubectl("delete", "mutatingwebhookconfiguration", "assetlock")
        taken.append(await fenced.by_policy_alone(bench, names))
    return taken


@contextlib.contextmanager
def _installed() -> Iterator[ControlPlane]:
    """A control plane of its own with the operator in it."""
    with ControlPlane() as cluster:
        cluster.kubectl("create", "namespace", NAMESPACE)
        stack.start(cluster, keep_running=True)
        yield cluster


def main() -> int:
    """Measure; 1 when a bar is missed."""
    with _installed() as cluster:
        with ControlPlane() as plain:
            plain.kubectl("create", "namespace", NAMESPACE)
            taken = [asyncio.run(_beside_a_plain_cluster(cluster, plain))]
        taken += asyncio.run(_alone(cluster))
    with _installed() as cluster:
        taken += asyncio.run(_fenced(cluster))
    rows.show(taken)
    rows.save(taken, REPORT)
    return 0 if all(row.ok for row in taken) else 1


if __name__ == "__main__":
    sys.exit(main())
