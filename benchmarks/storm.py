"""Somebody whose writes are refused, at an even pace, in a process of its own as strangers are."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import pathlib
import random
import time
from collections.abc import Iterator, Sequence
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event

from assetlock.kube import wire
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from assetlock.kube.resources import CONFIG_MAPS
from benchmarks.bench import NAMESPACE

PER_SECOND = 200
AT_ONCE = 20
_REFUSED = (403, 423)
_SPAWN = multiprocessing.get_context("spawn")


class Storm:
    """Patches to locked objects as another user: 200 a second, or as many as the machine can do."""

    def __init__(self, kubeconfig: pathlib.Path, names: Sequence[str]) -> None:
        self._kubeconfig = kubeconfig
        self._names = names
        self._refused = 0
        self._seconds = 0.0

    @property
    def rate(self) -> float:
        """How many were refused a second."""
        return self._refused / self._seconds

    @contextlib.contextmanager
    def blowing(self) -> Iterator[None]:
        """Blow for as long as the block lasts, which begins when the first write was refused."""
        stop, begun, refused = _SPAWN.Event(), _SPAWN.Event(), _SPAWN.Value("q", 0)
        arguments = (self._kubeconfig, self._names, begun, stop, refused)
        process = _SPAWN.Process(target=_blow, args=arguments, daemon=True)
        process.start()
        try:
            if not begun.wait(60):
                raise RuntimeError("no write of a stranger's was refused")
            began, before = time.perf_counter(), refused.value
            yield
            self._seconds += time.perf_counter() - began
            self._refused += refused.value - before
        finally:
            stop.set()
            process.join()
        if process.exitcode:
            raise RuntimeError("a stranger's write was not refused as one to a locked object is")


def _blow(
    kubeconfig: pathlib.Path, names: Sequence[str], begun: Event, stop: Event, refused: Synchronized[int]
) -> None:
    asyncio.run(_knock_until(kubeconfig, names, begun, stop, refused))


async def _knock_until(
    kubeconfig: pathlib.Path, names: Sequence[str], begun: Event, stop: Event, refused: Synchronized[int]
) -> None:
    transport = HttpTransport(load_config(kubeconfig, environ={}))

    async def knock(due: float) -> None:
        while not stop.is_set():
            await asyncio.sleep(due - time.perf_counter())
            reply = await transport.request(
                "PATCH",
                CONFIG_MAPS.path(NAMESPACE, random.choice(names)),
                params={},
                headers={"content-type": wire.MERGE_PATCH, "accept": wire.JSON},
                body=json.dumps({"data": {"value": "forced"}}).encode(),
                timeout=60,
            )
            if reply.status not in _REFUSED:
                raise RuntimeError(f"a stranger's write was answered with {reply.status}: {reply.body!r}")
            with refused.get_lock():
                refused.value += 1
            begun.set()
            due = max(due + AT_ONCE / PER_SECOND, time.perf_counter())

    try:
        async with asyncio.TaskGroup() as tasks:
            for number in range(AT_ONCE):
                tasks.create_task(knock(time.perf_counter() + number / PER_SECOND))
    finally:
        await transport.close()
