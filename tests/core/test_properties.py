"""The decision under anything that can happen between its writes: crashes, sleepers, other people, time."""

from __future__ import annotations

import contextlib
import datetime

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from assetlock.core import decision as d
from assetlock.core import pods
from assetlock.core.decide import decide
from assetlock.core.locks import queue
from assetlock.core.pods import Fate
from assetlock.core.situation import Situation
from tests.core.world import Stale, World

NAMES = st.sampled_from(["a", "b", "c", "d"])
SECONDS = st.sampled_from([0.3, 1, 5, 29, 31, 61, 3600])


class Lock(RuleBasedStateMachine):
    """One asset, four locks, hand-made Leases, a leader that may crash and one that may oversleep."""

    @initialize()
    def begin(self) -> None:
        self.world = World()
        self.world.make_asset("app", "db")
        self.world.make_target("app")
        self.sleeping: list[d.Write] = []

    @rule(name=NAMES, wait=st.sampled_from(["0s", "30s", "10m"]), priority=st.integers(0, 2))
    def ask(self, name: str, wait: str, priority: int) -> None:
        if name not in self.world.locks:
            self.world.ask(name, f"user-{name}", wait=wait, priority=priority, ttl="30s")

    @rule(name=NAMES, wait=st.sampled_from(["0s", "10m"]), ends_with_pod=st.sampled_from([None, True, False]))
    def ask_from_a_pod(self, name: str, wait: str, ends_with_pod: bool | None) -> None:
        if name not in self.world.locks:
            self.world.ask_from_pod(name, wait=wait, ttl="30s", releaseWithHolder=ends_with_pod)

    @rule(name=NAMES)
    def end_the_pod(self, name: str) -> None:
        for uid in self._pod_of(name):
            self.world.pods[uid] = Fate(ended=f"pod {name} is gone")

    @rule(name=NAMES)
    def lose_sight_of_the_pod(self, name: str) -> None:
        for uid in self._pod_of(name):
            self.world.pods.setdefault(uid, Fate(doubt=("NodeUnreachable", "node n is unreachable")))

    def _pod_of(self, name: str) -> list[str]:
        holder = self.world.locks[name]["spec"]["holder"] if name in self.world.locks else {}
        return [holder["podUID"]] if "podUID" in holder else []

    @rule(name=NAMES)
    def withdraw(self, name: str) -> None:
        self.world.withdraw(name)

    @rule(seconds=SECONDS)
    def pass_time(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @rule(seconds=st.sampled_from([-7200, -170, -3, 3, 170]))
    def lead_by_another_clock(self, seconds: float) -> None:
        self.world.change_leader(seconds)

    @rule()
    def make_a_lease_by_hand(self) -> None:
        self.world.hand_make("job", seconds=30)

    @rule()
    def make_a_free_lease(self) -> None:
        self.world.make_free()

    @rule()
    def take_a_free_lease(self) -> None:
        self.world.take(seconds=30)

    @precondition(lambda self: self.world.lease)
    @rule()
    def renew(self) -> None:
        self.world.renew_by_hand()

    @precondition(lambda self: self.world.lease)
    @rule()
    def delete_the_lease_by_hand(self) -> None:
        self.world.drop_lease()

    @rule(name=st.sampled_from(["app", "db"]))
    def make_a_target_anew(self, name: str) -> None:
        self.world.targets.pop(name, None)
        self.world.make_target(name)

    @rule()
    def make_the_asset_anew_or_not_at_all(self) -> None:
        if self.world.asset is None:
            self.world.make_asset("app", "db")
        else:
            self.world.asset = None

    @rule()
    def fall_asleep_with_a_decision(self) -> None:
        self.sleeping = list(self.world.decided().writes)

    @rule()
    def wake_up(self) -> None:
        for write in self.sleeping:
            with contextlib.suppress(Stale):
                self.world.apply(write)
        self.sleeping = []

    @rule(steps=st.integers(1, 6))
    def work_and_crash(self, steps: int) -> None:
        """Each decision anew from what is there: a crash between two writes is no different."""
        for _ in range(steps):
            for write in self.world.decided().writes[:1]:
                self.world.apply(write)

    @rule(steps=st.integers(1, 6))
    def revoke_and_crash(self, steps: int) -> None:
        self.world.revoke(steps=steps)

    @rule()
    def revoke(self) -> None:
        world = self.world
        waiting = {lock.metadata.name for lock in queue.in_line(world.observe())}
        world.revoke(steps=20)
        assert not world.holders()
        assert not any(map(world.guard, world.spaces))
        assert not (world.asset and world.asset["status"]["holders"])
        assert not any(world.stamped_users(name) for name in world.targets)
        assert not any(world.state(name) == "Held" for name in world.locks)
        still = {lock.metadata.name for lock in queue.in_line(world.observe())}
        assert still <= waiting, "nobody is put into the line"
        assert world.revoke(steps=1) == []

    @rule()
    def settle(self) -> None:
        world = self.world
        world.settle()
        pending = Situation(world.observe()).waiters
        for lock in world.observe().locks:
            pod = pods.holds_for(lock)
            if pod and not queue.has_ended(lock):
                assert world.pods.get(pod.uid, Fate()).ended is None, f"{lock.metadata.name} outlives its pod"
        if pending and world.asset:
            assert Situation(world.observe()).active, "somebody waits and nobody holds"
        for lock in pending:
            assert queue.waits_at_all(lock), f"{lock.metadata.name} waits although it said it would not"
        if pending and pending[0].spec.mode == "Shared" and world.asset:
            assert world.is_full(), "a reader is first in line and there is room"
        if not Situation(world.observe()).active:
            assert not any(world.stamped_users(name) for name in world.targets), "stamped for nobody"
        assert world.settle() == []

    @invariant()
    def deadlines_lie_ahead(self) -> None:
        decision = decide(self.world.observe())
        if not decision.writes and decision.wake_at is not None:
            assert decision.wake_at > self.world.now - datetime.timedelta(microseconds=1)


class Semaphore(Lock):
    """The same with several slots, readers and writers, and a capacity that changes."""

    @initialize()
    def begin(self) -> None:
        super().begin()
        self.world.resize(3)

    @rule(
        name=NAMES, mode=st.sampled_from(["Shared", "Exclusive"]), wait=st.sampled_from(["0s", "30s", "10m"])
    )
    def ask_to_share(self, name: str, mode: str, wait: str) -> None:
        if name not in self.world.locks:
            self.world.ask(name, f"user-{name}", mode=mode, wait=wait, ttl="30s")

    @rule(slot=st.integers(0, 4))
    def make_a_lease_for_a_slot(self, slot: int) -> None:
        self.world.hand_make(f"job-{slot}", seconds=30, slot=slot)

    @rule(slot=st.integers(0, 4))
    def delete_the_lease_of_a_slot(self, slot: int) -> None:
        self.world.drop_lease(slot)

    @precondition(lambda self: self.world.asset)
    @rule(capacity=st.integers(1, 4))
    def resize(self, capacity: int) -> None:
        self.world.resize(capacity)


class Retargeted(Lock):
    """One asset that comes to name objects of other kinds, locked or not; controllers look only where it tells."""

    @initialize()
    def begin(self) -> None:
        super().begin()
        self.world.secret = {"password"}
        self.world.make_target("password")
        self.ask("a", wait="10m", priority=0)
        self.world.settle()

    @rule(named=st.sampled_from([(), ("app", "db"), ("password",), ("app", "password")]))
    def retarget(self, named: tuple[str, ...]) -> None:
        self.world.retarget(*named)

    @rule()
    def settle(self) -> None:
        super().settle()
        named = {target.name for target in self.world.observe().asset.spec.targets}
        strays = [name for name in self.world.targets if name not in named and self.world.stamped_users(name)]
        assert not strays, "stamped for an asset that does not name them"

    def make_the_asset_anew_or_not_at_all(self) -> None:
        """Not here: what a deleted asset has named is forgotten with it."""

    def wake_up(self) -> None:
        """Not here: who has slept through the next lock knows by itself what it stamps then."""


LONG = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLock, TestSemaphore, TestRetargeted = Lock.TestCase, Semaphore.TestCase, Retargeted.TestCase
TestLock.settings = TestSemaphore.settings = TestRetargeted.settings = LONG
