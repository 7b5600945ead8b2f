"""Several assets and the locks on them: each asset a world of its own, the locks in all of them the same."""

from __future__ import annotations

import dataclasses
from typing import Any

from assetlock.core import decision as d
from assetlock.core import names
from assetlock.core.decide import decide
from assetlock.core.joint.decide import JointView, decide_together
from assetlock.core.locks.lock import acquisition_of, assets_of, is_about, is_choosing, lock_uid
from assetlock.core.observation import Observation, ObservedLease
from assetlock.model.assetlock import AssetLock
from assetlock.model.lease import Lease
from tests.core.world import NAMESPACE, START, World

ASSETS = ("db", "vm", "web")


class Town:
    """What never may be is looked at after every write: a lock that is held has all of its assets."""

    def __init__(self, assets: tuple[str, ...] = ASSETS) -> None:
        self.worlds = {name: World(name=name, now=START) for name in assets}
        self.locks: dict[str, dict[str, Any]] = {}
        self.seen: dict[str, Any] = {}
        self.robbed = False
        self.writes: list[d.Write] = []
        for name, world in self.worlds.items():
            world.locks, world.seen = self.locks, self.seen
            self.at(name).make_asset(f"{name}-1")
            self.at(name).make_target(f"{name}-1")

    def at(self, asset: str) -> World:
        """One asset, with what all of them count alike."""
        world = self.worlds[asset]
        world.version = max(each.version for each in self.worlds.values())
        world.uids = max(each.uids for each in self.worlds.values())
        return world

    def ask(self, name: str, *assets: str, user: str = "", **spec: Any) -> None:
        """For several assets at once."""
        self.at(assets[0]).ask(name, user or f"user-{name}", **spec)
        del self.locks[name]["spec"]["assetName"]
        self.locks[name]["spec"]["assetNames"] = list(assets)

    def ask_any(self, name: str, count: int = 1, **spec: Any) -> None:
        """For so many of the assets with the label pool=shop."""
        self.at(ASSETS[0]).ask(name, f"user-{name}", **spec)
        del self.locks[name]["spec"]["assetName"]
        self.locks[name]["spec"] |= {"assetSelector": {"matchLabels": {"pool": "shop"}}, "count": count}

    def label(self, *assets: str) -> None:
        """Make these a pool, and no others."""
        for name, world in self.worlds.items():
            if world.asset is not None:
                world.asset["metadata"]["labels"] = {"pool": "shop"} if name in assets else {}
                self.at(name)._touch(world.asset)

    def ask_one(self, name: str, asset: str, **spec: Any) -> None:
        self.at(asset).ask(name, f"user-{name}", **spec)

    def withdraw(self, name: str) -> None:
        self.locks.pop(name, None)

    def drop_lease(self, asset: str, slot: int = 0) -> None:
        lease = self.worlds[asset].leases.get(slot)
        if lease is not None:
            self.robbed = True
            self.at(asset).drop_lease(slot)

    def pass_time(self, seconds: float) -> None:
        for world in self.worlds.values():
            world.pass_time(seconds)

    def state(self, name: str) -> str | None:
        return self.worlds[ASSETS[0]].state(name)

    def status(self, name: str) -> dict[str, Any]:
        status: dict[str, Any] = self.locks[name]["status"]
        return status

    def reason(self, name: str) -> str:
        """Reason and message of the lock's condition Settled."""
        told = next(c for c in self.status(name)["conditions"] if c["type"] == "Settled")
        return f"{told['reason']}: {told['message']}"

    def having(self, name: str) -> list[str]:
        """The assets whose Leases the lock has."""
        uid = self.locks[name]["metadata"]["uid"]
        return [
            asset
            for asset, world in self.worlds.items()
            if any(lock_uid(each) == uid for each in acquisitions(world))
        ]

    def assets_of(self, name: str) -> tuple[str, ...]:
        return assets_of(AssetLock.model_validate(self.locks[name]))

    def is_joint(self, name: str) -> bool:
        return "assetName" not in self.locks[name]["spec"]

    def observe(self, asset: str) -> Observation:
        observation = self.worlds[asset].observe()
        uids = set(map(lock_uid, acquisitions(self.worlds[asset])))
        locks = tuple(
            lock for lock in observation.locks if self._is_about(lock, asset) or lock.metadata.uid in uids
        )
        elsewhere = {acquisition_of(lock): self._elsewhere(asset, lock) for lock in locks}
        return dataclasses.replace(observation, locks=locks, elsewhere=elsewhere)

    def _is_about(self, lock: AssetLock, asset: str) -> bool:
        raw = self.worlds[asset].asset
        return is_about(lock, asset, raw["metadata"]["labels"] if raw else {})

    def _elsewhere(self, asset: str, lock: AssetLock) -> tuple[ObservedLease, ...]:
        return tuple(
            ObservedLease(slot, Lease.model_validate(raw), world._seen_at(slot))
            for other in assets_of(lock)
            if other != asset and (world := self.worlds.get(other))
            for slot, raw in world.leases.items()
            if raw["metadata"]["annotations"].get(names.ACQUISITION_ANNOTATION) == acquisition_of(lock)
        )

    def decide(self, what: str) -> tuple[str, d.Decision]:
        """What is decided about an asset, or about a lock over several; with the asset that it is about."""
        if what in self.worlds:
            return what, decide(self.observe(what))
        lock = AssetLock.model_validate(self.locks[what])
        choosing = is_choosing(lock)
        there = [name for name in self.worlds if self._is_about(lock, name) and self.worlds[name].asset]
        observations = tuple(map(self.observe, there if choosing else assets_of(lock)))
        view = JointView(self.worlds[ASSETS[0]].now, NAMESPACE, lock, observations)
        return "", decide_together(view)

    def everything(self) -> list[str]:
        """All that is decided about: the assets, and the locks over several."""
        return [*self.worlds, *(name for name in self.locks if self.is_joint(name))]

    def apply(self, asset: str, write: d.Write) -> None:
        """Make a write; then look at what must never be."""
        body = getattr(write, "body", {})
        where = body.get("metadata", {}).get("labels", {}).get(names.ASSET_LABEL) or asset or ASSETS[0]
        before = {name: self.state(name) for name in self.locks}
        held = self._held()
        self.at(where).apply(write)
        robbed = [each for each in held - self._held() if self.state(each[1]) == "Held"]
        assert not robbed, f"taken from who holds: {robbed}"
        self.writes.append(write)
        for name in self.locks:
            if self.state(name) == "Held" and before[name] != "Held" and self.is_joint(name):
                for each in set(self.assets_of(name)) - {where}:
                    world = self.at(each)
                    world._check_announcement(name, world._token(self.status(name)))
                lacking = set(self.assets_of(name)) - set(self.having(name))
                assert not lacking or self.robbed, f"{name} is Held without {lacking}"

    def _held(self) -> set[tuple[str, str]]:
        """Asset and lock, for each lock that holds and has its Lease."""
        told = [name for name in self.locks if self.state(name) == "Held"]
        return {(asset, name) for name in told for asset in self.having(name)}

    def settle(self, *, most: int = 300) -> None:
        """Decide about each in turn and apply until nothing is left to do."""
        for _ in range(most):
            quiet = True
            for what in self.everything():
                if what not in self.worlds and what not in self.locks:
                    continue
                asset, decision = self.decide(what)
                for write in decision.writes:
                    quiet = False
                    self.apply(asset, write)
            if quiet:
                self.robbed = False
                return
        raise AssertionError(f"no end: {[type(write).__name__ for write in self.writes[-12:]]}")


def acquisitions(world: World) -> set[str]:
    """What the Leases of an asset record."""
    annotations = (lease["metadata"]["annotations"] for lease in world.leases.values())
    return {each.get(names.ACQUISITION_ANNOTATION, "") for each in annotations}
