"""Where a scenario is measured: a control plane with the operator in it, and a client that sees what happens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
from collections.abc import AsyncIterator, Iterator

from assetlock.cli import stack
from assetlock.cli.stack import Part, Stack
from assetlock.dev import ControlPlane
from assetlock.kube.api import Api
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from benchmarks.bench import NAMESPACE, Bench


class Stage:
    """One control plane, for one scenario; it and all in it are gone afterwards."""

    def __init__(self, cluster: ControlPlane, operator: Stack) -> None:
        self.cluster = cluster
        self.operator = operator

    @contextlib.asynccontextmanager
    async def bench(self) -> AsyncIterator[Bench]:
        """An administrator's client that notes when locks are acquired."""
        async with _client(self.cluster) as bench:
            watching = asyncio.create_task(bench.watch())
            try:
                yield bench
            finally:
                watching.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watching

    @contextlib.asynccontextmanager
    async def plain(self) -> AsyncIterator[Bench]:
        """A client of a second control plane, which has nothing of ours."""
        with ControlPlane() as cluster:
            cluster.kubectl("create", "namespace", NAMESPACE)
            async with _client(cluster) as bench:
                yield bench

    def cpu(self, part: Part) -> float:
        """Seconds of CPU that a process of the operator's has used; raises RuntimeError if it was restarted."""
        pid = self.operator.running[part].pid
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        except FileNotFoundError:
            raise RuntimeError(f"the {part} process has ended meanwhile") from None
        user, system = int(fields[11]), int(fields[12])
        return (user + system) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def installed() -> Iterator[Stage]:
    """A control plane of its own with the operator in it."""
    with ControlPlane() as cluster:
        cluster.kubectl("create", "namespace", NAMESPACE)
        yield Stage(cluster, stack.start(cluster, keep_running=True))


@contextlib.asynccontextmanager
async def _client(cluster: ControlPlane) -> AsyncIterator[Bench]:
    api = Api(HttpTransport(load_config(cluster.kubeconfig)))
    try:
        yield Bench(api)
    finally:
        await api.close()
