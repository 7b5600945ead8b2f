"""Run every scenario on a control plane of its own, print the table, write ``build/bench.json``."""

from __future__ import annotations

import asyncio
import pathlib
import sys

from assetlock.cli import stack
from assetlock.dev import ControlPlane
from assetlock.kube.api import Api
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from assetlock.kube.resources import CONFIG_MAPS
from benchmarks import rows, scenarios
from benchmarks.bench import NAMESPACE, Bench

REPORT = pathlib.Path("build/bench.json")


async def _plain(cluster: ControlPlane) -> rows.Samples:
    """Writes before anything of ours is in the cluster: the yardstick of writes that don't concern us."""
    api = Api(HttpTransport(load_config(cluster.kubeconfig)))
    bench = Bench(api)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}, "data": {"value": "0"}}
    await api.create(CONFIG_MAPS, NAMESPACE, body)
    samples = [await bench.patch("plain") for _ in range(3 * scenarios.ROUNDS)]
    await api.close()
    return rows.Samples("before installing", samples[scenarios.ROUNDS :])


async def _measured(cluster: ControlPlane, plain: rows.Samples) -> list[rows.Row]:
    api = Api(HttpTransport(load_config(cluster.kubeconfig)))
    bench = Bench(api)
    async with scenarios.watching(bench):
        taken = [await scenarios.unlocked_write(bench, plain)]
        for scenario in (
            scenarios.holder_write,
            scenarios.grant,
            scenarios.throughput,
            scenarios.handover,
        ):
            taken.append(await scenario(bench))
    await api.close()
    return taken


def main() -> int:
    """Measure; 1 when a bar is missed."""
    with ControlPlane() as cluster:
        cluster.kubectl("create", "namespace", NAMESPACE)
        plain = asyncio.run(_plain(cluster))
        stack.start(cluster)
        taken = asyncio.run(_measured(cluster, plain))
    rows.show(taken)
    rows.save(taken, REPORT)
    return 0 if all(row.ok for row in taken) else 1


if __name__ == "__main__":
    sys.exit(main())
