"""A leader that falls asleep while one of its writes is on its way, and wakes when the lock has gone to another."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.cluster.conftest import Operated, operator_in_a_cluster, until
from tests.cluster.races import controllers
from tests.cluster.races.controllers import Controller
from tests.cluster.races.gates import HoldingProxy, holding_proxy

from assetlock.cli.stack import Part, Stack
from assetlock.dev import ControlPlane


@dataclasses.dataclass(frozen=True)
class Moment:
    """A write of the leader: part of a grant, or of the end of a lock."""

    title: str
    method: str
    path: str
    text: bytes = b""
    ends: bool = False

    def is_in(self, namespace: str) -> Callable[[str, str, bytes], bool]:
        """Whether a request in this namespace is that write."""

        def wanted(method: str, path: str, body: bytes) -> bool:
            is_there = path.endswith(f"/namespaces/{namespace}/{self.path}")
            return method == self.method and is_there and self.text in body

        return wanted


MOMENTS = (
    Moment("claims", "POST", "leases"),
    Moment("records", "PUT", "assets/vm-1/status", b'"lock":"first"'),
    Moment("stamps", "PATCH", "configmaps/app", b"alice"),
    Moment("announces", "PUT", "assetlocks/first/status", b'"Held"'),
    Moment("ends", "PUT", "assetlocks/first/status", b'"Expired"', ends=True),
    Moment("frees", "DELETE", "leases/asset.vm-1", ends=True),
    Moment("clears", "PUT", "assets/vm-1/status", b'"Unlocked"', ends=True),
    Moment("unstamps", "PATCH", "configmaps/app", b"null", ends=True),
)


@pytest.fixture(scope="module")
def operator_cluster() -> Iterator[tuple[ControlPlane, Stack]]:
    with operator_in_a_cluster() as (cluster, stack):
        cluster.remove_process(Part.CONTROLLER)
        yield cluster, stack


class Leaders:
    """Controllers that lead one after the other, all of them behind one proxy."""

    def __init__(self, cluster: ControlPlane, proxy: HoldingProxy, url: str) -> None:
        self.proxy = proxy
        self._cluster = cluster
        self._url = url
        self._leader = self._next()

    def fall_asleep(self) -> Controller:
        """Stop the leader in the midst of what it does; returns it when another leads."""
        sleeper = self._leader
        os.kill(sleeper.process.pid, signal.SIGSTOP)
        self._leader = self._next()
        return sleeper

    def wake(self, sleeper: Controller) -> None:
        """Let a leader go on, and return when it stands by, as one that has lost its place must. Then end it."""
        os.kill(sleeper.process.pid, signal.SIGCONT)
        try:
            until(sleeper.stands_by, "the former leader stands by", seconds=60)
        finally:
            os.kill(sleeper.process.pid, signal.SIGKILL)

    def _next(self) -> Controller:
        return controllers.start(self._cluster, server=self._url)


@pytest.fixture(scope="module")
def leaders(operator_cluster: tuple[ControlPlane, Stack]) -> Iterator[Leaders]:
    cluster, _ = operator_cluster
    with holding_proxy(cluster) as (proxy, url):
        yield Leaders(cluster, proxy, url)


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: moment.title)
def test_a_leader_that_slept_while_it_wrote_changes_nothing_when_it_wakes(
    operated: Operated, leaders: Leaders, moment: Moment
) -> None:
    operated.asset("vm-1", "app")
    operated.kubectl("wait", "ast/vm-1", "--for=condition=Ready", "--timeout=30s")
    ttl = "5s" if moment.text == b'"Expired"' else "1h"
    if moment.ends:
        operated.held("first", ttl=ttl, extendOnWrite=False)
    latch = leaders.proxy.hold(moment.is_in(operated.namespace))
    if not moment.ends:
        operated.lock("first")
    elif ttl == "1h":
        operated.kubectl("delete", "assetlock", "first", user="alice")
    latch.wait_for_arrival()
    sleeper = leaders.fall_asleep()
    try:
        _goes_to_bob(operated, moment)
        before = _state(operated)
        latch.let_go()
        leaders.proxy.wait_for_answer()
    finally:
        leaders.wake(sleeper)
    assert leaders.proxy.status in (404, 409)
    assert _state(operated) == before
    assert operated.write("app", "alice").returncode == 1
    assert operated.write("app", "bob").returncode == 0


def _goes_to_bob(operated: Operated, moment: Moment) -> None:
    """The next leader finishes what the sleeper began, and then gives the lock to another."""
    if not moment.ends:
        operated.wait("assetlock/first", "condition=Acquired")
        operated.kubectl("delete", "assetlock", "first", user="alice")
    operated.lock("second", "bob", wait="10m")
    operated.wait("assetlock/second", "condition=Acquired", timeout=60)


def _state(operated: Operated) -> dict[str, Any]:
    """What says who holds the lock."""
    lease, asset = operated.get("lease", "asset.vm-1"), operated.get("asset", "vm-1")
    holders = asset["status"]["holders"]
    return {
        "lease": [lease["metadata"]["uid"], lease["metadata"]["annotations"], lease["spec"]],
        "asset": [asset["status"]["fencingToken"], [holder["lock"] for holder in holders]],
        "target": operated.get("configmap", "app")["metadata"],
        "lock": operated.get("assetlock", "second")["status"]["state"],
    }
