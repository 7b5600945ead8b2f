"""What must hold in every state, after every change, and from every state onwards."""

from __future__ import annotations

import functools
from typing import NamedTuple

from assetlock.core import names
from assetlock.core.stamp import stamp_of
from tests.exhaustive.deciding import ASSET, NAMESPACE, THE_ASSET, holds, plan_of
from tests.exhaustive.state import State, World, Write, canonical, put
from tests.exhaustive.texts import Json, parsed

TERMINAL = frozenset({"Released", "Expired", "Revoked", "Failed", "Quarantined"})
_MOST_DECISIONS = 100


class BrokenPromise(AssertionError):
    """Something is as it must never be."""


def check_change(before: str | None, write: Write) -> None:
    """Tokens only grow, and what has ended stays so."""
    if before is None or write.text is None:
        return
    old, new = parsed(before), parsed(write.text)
    if write.place == THE_ASSET:
        _demand(_mark(new) >= _mark(old), f"the high-water mark fell from {_mark(old)} to {_mark(new)}")
    elif write.place.startswith("lock/"):
        was, now = old["status"].get("state"), new["status"].get("state")
        _demand(was not in TERMINAL or was == now, f"a lock left its terminal state {was} for {now}")
    elif write.place.startswith("target/"):
        was, now = (_stamp_token(obj) for obj in (old, new))
        _demand(not now or now >= was, f"a target was stamped with {now} over {was}")


def announcement(state: State, world: World, write: Write) -> int:
    """The highest token announced so far, with this write; each announcement's token is a new one."""
    before, after = _told(state.world.get(write.place)), _told(world.get(write.place))
    if after is None or after == before:
        return state.announced
    _demand(after > state.announced, f"token {after} was announced after {state.announced}")
    asset = world.get(THE_ASSET)
    mark = _mark(parsed(asset)) if asset else 0
    _demand(mark >= after, f"token {after} was announced with the high-water mark at {mark}")
    return after


@functools.cache
def check_world(world: World) -> None:
    """No more holders than capacity, and none beside an Exclusive one; the fence lets them in and nobody else.

    Whoever is about to be told may be let in already, and where several hold, one that has just ended still.
    """
    holders, capacity = _announced(world), capacity_of(world)
    taken = sum(holder.slots for holder in holders)
    _demand(taken <= capacity, f"{len(holders)} hold at once: {_named(holders)}")
    for place, text in world.under("target/") if holders else ():
        admitted, told = _admitted(parsed(text)), {(holder.token, holder.user) for holder in holders}
        let_in = f"{_named(holders)} hold; {place} lets in {sorted(admitted) if admitted is not None else 'anybody'}"
        _demand(admitted is not None and admitted >= told, let_in)
        _demand(taken < capacity or admitted == told, let_in)


def capacity_of(world: World) -> int:
    """How many slots the asset has."""
    asset = world.get(THE_ASSET)
    return int(parsed(asset)["spec"]["capacity"]) if asset else 0


@functools.cache
def check_future(world: World) -> None:
    """Whoever waits is granted, one after the other, once controllers are left in peace: each holder's term ends."""
    waiting = set(world.line)
    for _ in range(2 * len(world.line) + 2):
        world = _settled(world)
        waiting = {place for place in waiting if _state(world, place) is None}
        if not waiting:
            return
        leases = [place for place, _ in world.under("lease/")]
        _demand(bool(leases), f"{sorted(waiting)} wait and nobody holds")
        world = world._replace(over=world.over.union(leases))
    _demand(False, f"{sorted(waiting)} are never served")


@functools.cache
def _settled(world: World) -> World:
    """The world once a controller has done all it wants to."""
    for _ in range(_MOST_DECISIONS):
        plan = plan_of(world)
        if plan is None or not all(holds(world, condition) for condition in plan.conditions):
            _demand(plan is None, f"a decision is never acted on: {plan}")
            return world
        for write in plan.writes:
            check_change(world.get(write.place), write)
            world = put(world, write)
            check_world(world)
        world = canonical(world, [], 0).world
    raise BrokenPromise("the controller never comes to rest")


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BrokenPromise(otherwise)


def _mark(asset: Json) -> int:
    return int(asset["status"].get("fencingToken", 0))


def _state(world: World, place: str) -> str | None:
    text = world.get(place)
    state: str | None = parsed(text)["status"].get("state") if text else "Deleted"
    return state


def _told(text: str | None) -> int | None:
    """The token that this AssetLock or hand-made Lease has told its holder; nothing if it holds nothing."""
    if text is None:
        return None
    raw = parsed(text)
    if raw.get("status", {}).get("state") == "Held":
        return int(raw["status"]["fencingToken"])
    annotations = raw["metadata"].get("annotations", {})
    if names.ACQUISITION_ANNOTATION in annotations and names.LOCK_ANNOTATION not in annotations:
        told = annotations.get(names.TOKEN_ANNOTATION)
        return int(told) if told else None
    return None


class Holder(NamedTuple):
    """Who was told to hold, with which token, and how many slots that takes."""

    token: int
    user: str
    slots: int


def _announced(world: World) -> list[Holder]:
    """Everybody who was told to hold, and still does."""
    found = []
    for _, text in (*world.under("lock/"), *world.under("lease/")):
        token, raw = _told(text), parsed(text)
        if token is not None and "status" in raw:
            slots = 1 if raw["spec"]["mode"] == "Shared" else capacity_of(world)
            found.append(Holder(token, raw["spec"]["holder"]["username"], slots))
        elif token is not None:
            owner = raw["metadata"]["annotations"][names.OWNER_ANNOTATION]
            found.append(Holder(token, owner.partition(" ")[2], 1))
    return sorted(found)


def _named(holders: list[Holder]) -> str:
    return ", ".join(f"{holder.user} ({holder.token})" for holder in holders)


def _admitted(target: Json) -> set[tuple[int, str]] | None:
    """Token and user of those whose writes the policy admits; ``None`` for anybody's."""
    meta = target["metadata"]
    if meta.get("labels", {}).get(names.FENCED_LABEL) != "true":
        return None
    stamp = stamp_of(meta.get("annotations", {}), names.stamp_key(ASSET, NAMESPACE), meta["uid"])
    return {(holder.token, holder.identity.username) for holder in stamp.holders} if stamp else None


def _stamp_token(target: Json) -> int:
    return max((token for token, _ in _admitted(target) or ()), default=0)
