"""No step of the controller keeps the event loop for long, however much there is: in time on the processor."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from assetlock.controller.clock import SystemClock
from assetlock.controller.controller import Controller
from assetlock.controller.main import COLLECTIONS
from assetlock.core.decide import decide
from assetlock.core.decision import Event
from assetlock.core.observation import Limits
from assetlock.kube.api import Api
from assetlock.kube.transport import Reply
from tests.core.world import World

LOCKS = 10_000
TARGETS = 500
LONGEST = 0.05
LONGEST_IN_LISTING = 0.25
"""Taken in at once, they took more than a second."""

PAGE = 500


class Silent:
    def tell(self, namespace: str, happening: Event) -> None:
        """Nobody listens."""


class Pages:
    """Answers lists page by page, with what was prepared, and nothing else ever."""

    def __init__(self, pages: Mapping[str, list[bytes]]) -> None:
        self._pages = pages

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: float,
    ) -> Reply:
        """The page that is asked for."""
        pages = self._pages.get(path.rpartition("/")[2], [])
        if method != "GET" or "limit" not in params or not pages:
            await asyncio.sleep(timeout)
        return Reply(200, body=pages[int(params.get("continue") or 0)])

    async def stream(
        self, path: str, *, params: Mapping[str, str], headers: Mapping[str, str], idle_timeout: float
    ) -> AsyncIterator[bytes]:
        """Nothing happens."""
        await asyncio.sleep(idle_timeout)
        return
        yield

    async def close(self) -> None:
        """Nothing is open."""


@contextmanager
def steps() -> Iterator[list[float]]:
    """How long each step of the event loop took on the processor."""
    taken, run = list[float](), asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        taken.append(time.thread_time() - began)

    asyncio.Handle._run = timed  # type: ignore[method-assign]
    try:
        yield taken
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]


def test_ten_thousand_locks_are_taken_in_a_few_at_a_time() -> None:
    async def story() -> list[float]:
        transport = Pages(
            {plural: _pages(plural) for plural in ("assets", "assetlocks", "leases")} | _nothing()
        )
        controller = Controller(Api(transport), SystemClock(), Limits(), Silent())
        gc.set_threshold(*COLLECTIONS)
        with steps() as taken:
            running = asyncio.create_task(controller.run())
            while not controller.fresh:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            controller.lead(True)
            await asyncio.sleep(0.5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return taken

    assert max(asyncio.run(story())) < LONGEST_IN_LISTING


def test_five_hundred_targets_are_decided_about_in_one_step() -> None:
    world = World()
    world.make_asset("t-0")
    world.make_target("t-0")
    world.settle()
    world.ask("first")
    for _ in range(2):
        for write in world.decided().writes:
            world.apply(write)
    observation = world.observe()
    (one,) = observation.targets
    many = [
        dataclasses.replace(one, uid=f"uid-{n}", target=one.target.model_copy(update={"name": f"t-{n}"}))
        for n in range(TARGETS)
    ]
    observation = dataclasses.replace(observation, targets=tuple(many))
    began = time.thread_time()
    decision = decide(observation)
    taken = time.thread_time() - began
    assert len(decision.writes) == TARGETS
    assert taken < LONGEST


def _nothing() -> dict[str, list[bytes]]:
    return {"maintenancewindows": [json.dumps({"metadata": {"resourceVersion": "9"}, "items": []}).encode()]}


def _pages(plural: str) -> list[bytes]:
    make = {"assets": _asset, "assetlocks": _lock, "leases": _lease}[plural]
    items = [make(number) for number in range(LOCKS)]
    pages = [items[first : first + PAGE] for first in range(0, LOCKS, PAGE)]
    return [
        json.dumps(
            {
                "metadata": {
                    "resourceVersion": "90000",
                    "continue": str(n + 1) if n + 1 < len(pages) else "",
                },
                "items": page,
            }
        ).encode()
        for n, page in enumerate(pages)
    ]


def _meta(name: str, number: int, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": "shop",
        "uid": f"{name}-uid",
        "resourceVersion": str(number + 10),
        "creationTimestamp": "2026-11-01T00:00:00Z",
        "generation": 1,
        "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:a": {}}}}],
        **more,
    }


def _asset(number: int) -> dict[str, Any]:
    return {"metadata": _meta(f"vm-{number}", number), "spec": {"type": "VM"}}


def _lock(number: int) -> dict[str, Any]:
    holder = {"username": "alice"}
    return {
        "metadata": _meta(f"lock-{number}", number),
        "spec": {"assetName": f"vm-{number}", "wait": "1h", "holder": holder},
    }


def _lease(number: int) -> dict[str, Any]:
    labels = {"assetlock.dev/asset": f"vm-{number}"}
    return {
        "metadata": _meta(f"asset.vm-{number}", number, labels=labels),
        "spec": {"holderIdentity": "alice", "leaseDurationSeconds": 3600},
    }
