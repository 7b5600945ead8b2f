"""Run every scenario on control planes of its own, print the table, write ``build/bench.json``."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import sys
from collections.abc import AsyncIterator

from assetlock.cli import stack
from assetlock.dev import ControlPlane
from assetlock.kube.api import Api
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from benchmarks import rows, scenarios
from benchmarks.bench import NAMESPACE, Bench

REPORT = pathlib.Path("build/bench.json")


@contextlib.asynccontextmanager
async def _bench(cluster: ControlPlane) -> AsyncIterator[Bench]:
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
            scenarios.holder_write,
            scenarios.grant,
            scenarios.handover,
            scenarios.throughput,
        ):
            print(f"measuring: {scenario.__name__}", file=sys.stderr)
            taken.append(await scenario(bench))
    return taken


def main() -> int:
    """Measure; 1 when a bar is missed."""
    with ControlPlane() as cluster:
        cluster.kubectl("create", "namespace", NAMESPACE)
        stack.start(cluster)
        with ControlPlane() as plain:
            plain.kubectl("create", "namespace", NAMESPACE)
            taken = [asyncio.run(_beside_a_plain_cluster(cluster, plain))]
        taken += asyncio.run(_alone(cluster))
    rows.show(taken)
    rows.save(taken, REPORT)
    return 0 if all(row.ok for row in taken) else 1


if __name__ == "__main__":
    sys.exit(main())
