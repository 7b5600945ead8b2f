"""Deciding from the head of a line is deciding from all of it; and it costs the same however long the line is."""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assetlock.core import decision as d
from assetlock.core.decide import decide
from assetlock.core.locks import line as line_module
from assetlock.core.locks import queue
from assetlock.core.locks.line import Line
from assetlock.core.locks.lock import lock_uid
from assetlock.core.observation import Observation
from assetlock.core.rules import refreshing
from assetlock.core.situation import Situation
from assetlock.core.status import asset as asset_status
from assetlock.model.assetlock import AssetLock
from tests.core.test_properties import Lock, Semaphore
from tests.core.world import ASSET, START, World

HOUR = datetime.timedelta(hours=1)


@pytest.fixture
def short_head(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two in line are enough for some to be behind."""
    monkeypatch.setattr(queue, "SHOWN", 1)
    monkeypatch.setattr(asset_status, "SHOWN", 1)
    monkeypatch.setattr(line_module, "MOST_DUE", 1)
    yield


def from_the_head(whole: Observation) -> Observation:
    """The same with what a line hands over."""
    line = Line(whole.name)
    for lock in whole.locks:
        seen = whole.locks_seen.get(lock.metadata.uid, whole.now)
        line.add(lock, (seen - START).total_seconds())
    having = [observed.lease.metadata.annotations for observed in whole.leases]
    uids = {lock_uid(a.get("assetlock.dev/acquisition", "")) for a in having}
    names = {a.get("assetlock.dev/lock") for a in having}
    uids |= {lock.metadata.uid for lock in whole.locks if lock.metadata.name in names}
    uids |= {lock_uid(h.acquisition) for h in whole.asset.status.holders} if whole.asset else set()
    locks, behind = line.look(whole.now, time_of_day, concerned=uids, each_ttl=bool(whole.windows))
    in_order = tuple(lock for lock in whole.locks if lock in locks)
    return dataclasses.replace(whole, locks=in_order, behind=behind)


def time_of_day(seconds: float) -> datetime.datetime:
    return START + datetime.timedelta(seconds=seconds)


def urgent(decision: d.Decision) -> tuple[d.Write, ...]:
    return () if decision.leisurely else decision.writes


def assert_as_from_the_whole_line(whole: Observation) -> None:
    head = from_the_head(whole)
    near = decide(head)
    far = decide(with_first(whole, failed_by(near)))
    assert urgent(near) == urgent(far)
    assert urgent(far) == () or near.confirm == far.confirm
    if not far.writes:
        assert near.writes == () and near.wake_at == far.wake_at
    for write in near.writes if near.leisurely else ():
        assert write in list(refreshing.out_of_date(Situation(whole)))


def failed_by(decision: d.Decision) -> str | None:
    """Of several whose time is over any may be the first."""
    failed = [
        w
        for w in decision.writes
        if isinstance(w, d.WriteLockStatus) and w.body["status"]["state"] == "Failed"
    ]
    return failed[0].body["metadata"]["uid"] if failed else None


def with_first(whole: Observation, uid: str | None) -> Observation:
    locks = sorted(whole.locks, key=lambda lock: lock.metadata.uid != uid)
    return dataclasses.replace(whole, locks=tuple(locks))


class Headed(Lock):
    """Whatever happens, decisions from the head are those from the whole line."""

    def end_the_pod(self, name: str = "") -> None:
        """Not here: whose pod has ended is known of the first ones only."""

    def deadlines_lie_ahead(self) -> None:
        assert_as_from_the_whole_line(self.world.observe())


class HeadedSemaphore(Headed, Semaphore):
    """The same with several slots."""


@pytest.mark.usefixtures("short_head")
class TestHeaded(Headed.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(Lock.TestCase.settings, max_examples=25)


@pytest.mark.usefixtures("short_head")
class TestHeadedSemaphore(HeadedSemaphore.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(Lock.TestCase.settings, max_examples=25)


asked = st.fixed_dictionaries(
    {
        "wait": st.sampled_from(["0s", "5s", "20s", "1h"]),
        "ttl": st.sampled_from(["30s", "50m", "2h"]),
        "priority": st.integers(-1, 1),
        "mode": st.sampled_from(["Exclusive", "Shared", "Maintenance"]),
    }
)


@pytest.mark.usefixtures("short_head")
@given(
    specs=st.lists(asked, min_size=2, max_size=9),
    capacity=st.integers(1, 2),
    pauses=st.lists(st.integers(0, 9)),
)
@settings(max_examples=60, deadline=None)
def test_a_line_before_a_window_is_served_from_its_head_as_from_the_whole(
    specs: list[dict[str, Any]], capacity: int, pauses: list[int]
) -> None:
    world = World()
    world.make_asset("app", capacity=capacity)
    world.make_target("app")
    start = START + HOUR
    world.schedule("freeze", start=f"{start:%FT%TZ}", end=f"{start + HOUR:%FT%TZ}", leadTime="1h")
    for number, spec in enumerate(specs):
        world.ask(f"lock-{number}", f"user-{number}", **spec)
        assert_as_from_the_whole_line(world.observe())
    for pause in pauses:
        assert_as_from_the_whole_line(world.observe())
        for write in world.decided().writes[:1]:
            world.apply(write)
        world.pass_time(pause)


def line_of(length: int, gives_up: Callable[[int], int] = lambda number: number + 600) -> tuple[World, Line]:
    world = World()
    world.make_asset("app")
    world.make_target("app")
    world.ask("holder", ttl="4h")
    world.settle()
    line = Line(ASSET)
    for number in range(length):
        world.ask(f"waiter-{number}", f"user-{number}", wait=f"{gives_up(number)}s")
        raw = world.locks[f"waiter-{number}"]
        raw["metadata"]["uid"] = f"uid-{number:06}"
        raw["status"] = {"state": "Pending", "queuePosition": number + 1}
        line.add(AssetLock.model_validate(raw), 0.0)
    return world, line


def cost_of_deciding(length: int) -> float:
    """Seconds of CPU for 50 decisions, the best of several times."""
    world, line = line_of(length)
    observed = dataclasses.replace(world.observe(), locks=())
    holder = AssetLock.model_validate(world.locks["holder"])
    line.add(holder, 0.0)

    def once() -> float:
        began = time.process_time()
        for _ in range(50):
            locks, behind = line.look(world.now, time_of_day, concerned=[holder.metadata.uid])
            decide(dataclasses.replace(observed, locks=locks, behind=behind))
        return time.process_time() - began

    return min(once() for _ in range(5))


def test_a_decision_costs_the_same_with_ten_and_with_ten_thousand_in_line() -> None:
    assert cost_of_deciding(10_000) <= 1.5 * cost_of_deciding(10)


def test_waiters_far_back_give_up_in_time() -> None:
    """The line is by age, and they give up the other way round."""
    world, line = line_of(2_000, gives_up=lambda number: 3_000 - number)
    _, behind = line.look(world.now, time_of_day)
    assert behind.next_deadline == START + datetime.timedelta(seconds=1_001)
    late = START + datetime.timedelta(seconds=1_500)
    locks, behind = line.look(late, time_of_day)
    looked_at = {lock.metadata.name for lock in locks}
    assert {f"waiter-{number}" for number in range(1_990, 2_000)} < looked_at
    assert len(looked_at) + behind.count == 2_000 - 500 + 10
    assert behind.next_deadline == late + datetime.timedelta(seconds=1)


def test_who_is_looked_at_far_back_has_its_place() -> None:
    world, line = line_of(100)
    uid = AssetLock.model_validate(world.locks["waiter-70"]).metadata.uid
    locks, behind = line.look(world.now, time_of_day, concerned=[uid])
    situation = Situation(dataclasses.replace(world.observe(), locks=locks, behind=behind))
    assert situation.places[uid] == 71
    assert situation.queue_length == 100
    (shown,) = refreshing.far_back(situation, [uid])
    assert shown.body["status"]["queuePosition"] == 71


def test_what_has_ended_is_left_out_but_for_the_highest_tokens_and_what_is_to_be_forgotten() -> None:
    world, line = World(), Line(ASSET)
    for number in range(200):
        world.ask(f"done-{number}", ttlSecondsAfterFinished=60 if number < 3 else None)
        raw = world.locks[f"done-{number}"]
        raw["status"] = {"state": "Released", "fencingToken": number, "finishTime": f"{START:%FT%TZ}"}
        line.add(AssetLock.model_validate(raw), 0.0)
    locks, behind = line.look(START, time_of_day)
    assert {lock.status.fencing_token for lock in locks} == set(range(190, 200))
    assert behind.next_deadline == START + datetime.timedelta(seconds=60)
    locks, _ = line.look(START + HOUR, time_of_day)
    assert {"done-0", "done-1", "done-2"} < {lock.metadata.name for lock in locks}


def test_a_line_that_all_have_left_keeps_nothing() -> None:
    world, line = line_of(50)
    for lock in list(line):
        line.discard(lock.metadata.uid)
    assert (len(line), line.waiting, list(line.apart)) == (0, 0, [])
    assert line.look(world.now, time_of_day) == ((), line_module.Behind())


def test_whose_place_has_come_half_way_nearer_is_found() -> None:
    world, line = line_of(60)
    for number in range(25):
        line.discard(AssetLock.model_validate(world.locks[f"waiter-{number}"]).metadata.uid)
    names = {AssetLock.model_validate(raw).metadata.uid: name for name, raw in world.locks.items()}
    found, following = line.outdated(range(queue.SHOWN, 1_000), 100)
    assert ([names[uid] for uid in found], following) == ([f"waiter-{n}" for n in range(35, 50)], 1_000)
    found, following = line.outdated(range(queue.SHOWN, 1_000), 3)
    assert ([names[uid] for uid in found], following) == ([f"waiter-{n}" for n in range(35, 38)], 13)


def test_a_lock_over_several_assets_in_a_line_is_shown_by_itself() -> None:
    world, line = line_of(30)
    for number in range(20):
        world.ask(f"joint-{number}", wait="1h", assetName=None, assetNames=["vm-1", "db"], priority=-1)
        line.add(AssetLock.model_validate(world.locks[f"joint-{number}"]), 0.0)
    assert line.waiting == 50
    assert line.unshown(100) == []
    assert line.outdated(range(queue.SHOWN, 1_000), 100)[0] == []
