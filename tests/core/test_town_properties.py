"""Locks over one asset and over several, under anything that can happen between two writes."""

from __future__ import annotations

import contextlib

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from assetlock.core import decision as d
from tests.core.town import ASSETS, Town
from tests.core.world import TERMINAL, Stale

NAMES = st.sampled_from(["a", "b", "c", "d"])
SOME = st.lists(st.sampled_from(ASSETS), min_size=1, max_size=3, unique=True)
WAITS = st.sampled_from(["0s", "30s", "10m"])


class TownLife(RuleBasedStateMachine):
    """Three assets, four locks, Leases by hand, a leader that may crash and one that may oversleep."""

    @initialize(capacity=st.sampled_from([1, 1, 2]))
    def begin(self, capacity: int) -> None:
        self.town = Town()
        for asset in ASSETS:
            self.town.at(asset).resize(capacity)
        self.sleeping: list[tuple[str, d.Write]] = []

    @rule(
        name=NAMES,
        assets=SOME,
        wait=WAITS,
        priority=st.integers(0, 2),
        mode=st.sampled_from(["Exclusive", "Shared"]),
    )
    def ask(self, name: str, assets: list[str], wait: str, priority: int, mode: str) -> None:
        if name not in self.town.locks:
            self.town.ask(name, *assets, wait=wait, priority=priority, mode=mode, ttl="30s")

    @rule(name=NAMES, count=st.integers(1, 3), wait=WAITS, mode=st.sampled_from(["Exclusive", "Shared"]))
    def ask_for_any(self, name: str, count: int, wait: str, mode: str) -> None:
        if name not in self.town.locks:
            self.town.ask_any(name, count, wait=wait, mode=mode, ttl="30s")

    @rule(assets=st.lists(st.sampled_from(ASSETS), max_size=3, unique=True))
    def label(self, assets: list[str]) -> None:
        self.town.label(*assets)

    @rule(name=NAMES, asset=st.sampled_from(ASSETS), wait=WAITS, priority=st.integers(0, 2))
    def ask_for_one(self, name: str, asset: str, wait: str, priority: int) -> None:
        if name not in self.town.locks:
            self.town.ask_one(name, asset, wait=wait, priority=priority, ttl="30s")

    @rule(name=NAMES)
    def withdraw(self, name: str) -> None:
        self.town.withdraw(name)

    @rule(seconds=st.sampled_from([0.3, 5, 31, 61]))
    def pass_time(self, seconds: float) -> None:
        self.town.pass_time(seconds)

    @rule(asset=st.sampled_from(ASSETS), slot=st.integers(0, 1))
    def make_a_lease_by_hand(self, asset: str, slot: int) -> None:
        self.town.at(asset).hand_make("job", seconds=30, slot=slot)

    @rule(asset=st.sampled_from(ASSETS), slot=st.integers(0, 1))
    def delete_a_lease(self, asset: str, slot: int) -> None:
        self.town.drop_lease(asset, slot)

    @rule(asset=st.sampled_from(ASSETS))
    def renew(self, asset: str) -> None:
        self.town.at(asset).renew_by_hand()

    @rule(asset=st.sampled_from(ASSETS))
    def remove_the_asset_or_make_it_anew(self, asset: str) -> None:
        world = self.town.at(asset)
        if world.asset is None:
            world.make_asset(f"{asset}-1")
        else:
            world.asset = None

    @rule(number=st.integers(0, 6))
    def fall_asleep_with_a_decision(self, number: int) -> None:
        asset, decision = self.town.decide(self._one_of_all(number))
        self.sleeping = [(asset, write) for write in decision.writes]

    @rule()
    def wake_up(self) -> None:
        for asset, write in self.sleeping:
            with contextlib.suppress(Stale):
                self.town.apply(asset, write)
        self.sleeping = []

    @rule(numbers=st.lists(st.integers(0, 6), min_size=1, max_size=8))
    def work_and_crash(self, numbers: list[int]) -> None:
        """Each decision anew from what is there: a crash between two writes is no different."""
        for number in numbers:
            asset, decision = self.town.decide(self._one_of_all(number))
            for write in decision.writes[:1]:
                self.town.apply(asset, write)

    @rule()
    def settle(self) -> None:
        town = self.town
        town.settle()
        for name in town.locks:
            having, state = town.having(name), town.state(name)
            if state in TERMINAL:
                assert not having, f"{name} is {state} and has {having}"
            elif state == "Held":
                assert having == sorted(town.assets_of(name)), f"{name} is Held and has {having}"
            elif town.is_joint(name):
                assert not having, f"{name} waits and has {having}"
                assert self._is_in_the_way(name), f"{name} waits for nothing"
        for asset, world in town.worlds.items():
            if not world.leases:
                assert world.stamped_users(f"{asset}-1") == [], "stamped for nobody"

    def _is_in_the_way(self, name: str) -> bool:
        """Whether somebody has one of the assets, or is before it in line, or there is none."""
        if "assetSelector" in self.town.locks[name]["spec"]:
            return not self._has_enough_to_choose_from(name)
        return any(
            self.town.worlds[asset].leases
            or not self.town.worlds[asset].asset
            or self._is_before(name, asset)
            for asset in self.town.assets_of(name)
        )

    def _has_enough_to_choose_from(self, name: str) -> bool:
        pool = [a for a in ASSETS if self._is_in_pool(a) and not self._is_before(name, a)]
        free = [asset for asset in pool if not self.town.worlds[asset].leases]
        return len(free) >= self.town.locks[name]["spec"]["count"]

    def _is_in_pool(self, asset: str) -> bool:
        raw = self.town.worlds[asset].asset
        return raw is not None and bool(raw["metadata"]["labels"])

    def _is_before(self, name: str, asset: str) -> bool:
        waiting = [other for other in self.town.locks if self.town.state(other) == "Pending"]
        return any(
            asset in self.town.assets_of(other) or "assetSelector" in self.town.locks[other]["spec"]
            for other in waiting
            if other != name
        )

    def _one_of_all(self, number: int) -> str:
        all_of_them = self.town.everything()
        return all_of_them[number % len(all_of_them)]


TestTownLife = TownLife.TestCase
TestTownLife.settings = settings(
    max_examples=80, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
