"""What must hold in every state, after every change, and from every state onwards."""

from __future__ import annotations

import functools
from typing import NamedTuple

from assetlock.core import names
from assetlock.core.fence.stamp import stamp_of
from tests.exhaustive.deciding import ASSET, NAMESPACE, THE_ASSET, THE_WINDOW, holds, plan_of
from tests.exhaustive.state import Plan, State, World, Write, canonical, put, with_uid
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
        known = {holder["acquisition"] for holder in old["status"].get("holders", ())}
        for holder in new["status"].get("holders", ()):
            again = f"token {holder['fencingToken']} was given with the high-water mark at {_mark(old)}"
            _demand(holder["acquisition"] in known or holder["fencingToken"] > _mark(old), again)
    elif write.place.startswith("lock/"):
        was, now = old["status"].get("state"), new["status"].get("state")
        _demand(was not in TERMINAL or was == now, f"a lock left its terminal state {was} for {now}")
    elif write.place.startswith("target/"):
        was, now = ({token for token, _ in _admitted(obj) or ()} for obj in (old, new))
        back = now - was and max(now) < max(was, default=0)
        _demand(not back, f"a target was stamped with {sorted(now)} over {sorted(was)}")


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
    _check_places(world)
    holders, capacity = _announced(world), capacity_of(world)
    taken = sum(holder.slots for holder in holders)
    _demand(taken <= capacity, f"{len(holders)} hold at once: {_named(holders)}")
    for place, text in world.under("target/") if holders else ():
        admitted, told = (
            _admitted(parsed(text)),
            {(holder.token, w) for holder in holders for w in holder.writers},
        )
        let_in = f"{_named(holders)} hold; {place} lets in {sorted(admitted) if admitted is not None else 'anybody'}"
        _demand(admitted is not None and admitted >= told, let_in)
        _demand(taken < capacity or admitted == told, let_in)


def _check_places(world: World) -> None:
    """A stamp is only where the Asset lists that one may be."""
    asset = world.get(THE_ASSET)
    listed = parsed(asset)["status"].get("fencedPlaces") if asset else []
    for place, text in world.under("target/"):
        _demand(
            bool(listed) or not _is_stamped(text), f"{place} is stamped, and the asset lists no such place"
        )


def check_decision(world: World, plan: Plan) -> None:
    """While a window has closed the asset, nobody is granted it but who maintains it."""
    window = world.get(THE_WINDOW)
    if window is None or _is_passed_by(world, window):
        return
    for write in plan.writes:
        if write.text is None:
            continue
        old, new = parsed(world.get(write.place) or "{}"), parsed(write.text)
        if write.place.startswith("lease/"):
            name = new["metadata"]["annotations"].get(names.LOCK_ANNOTATION)
            began = [name] if name and _claim(new) != _claim(old) else []
        elif write.place == THE_ASSET:
            known = {holder["acquisition"] for holder in old["status"]["holders"]}
            began = [h.get("lock") for h in new["status"]["holders"] if h["acquisition"] not in known]
        else:
            continue
        for lock in filter(None, began):
            mode = parsed(world.get(f"lock/{lock}") or "{}").get("spec", {}).get("mode")
            _demand(mode == "Maintenance", f"{lock} was granted while the asset was closed")


def _is_passed_by(world: World, window: str) -> bool:
    """Whether somebody had the asset when the window opened, and the window leaves it to them."""
    return parsed(window)["spec"]["whenHeld"] == "Skip" and "Failed" in _of_window(world)


def _of_window(world: World) -> list[str | None]:
    """The states of the locks of this night."""
    night = parsed(world.get(THE_WINDOW) or "")["spec"]["reason"]
    own = [place for place in world.line if parsed(world.get(place) or "")["spec"].get("reason") == night]
    return [_state(world, place) for place in own]


def _claim(lease: Json) -> str | None:
    found: str | None = lease.get("metadata", {}).get("annotations", {}).get(names.ACQUISITION_ANNOTATION)
    return found


def capacity_of(world: World) -> int:
    """How many slots the asset has."""
    asset = world.get(THE_ASSET)
    return int(parsed(asset)["spec"]["capacity"]) if asset else 0


@functools.cache
def check_future(world: World) -> None:
    """Whoever waits is granted, one after the other, once controllers are left in peace: each holder's term ends."""
    if world.get(THE_WINDOW) is not None:
        world = _closed(world)
        world = world._replace(objects=tuple(item for item in world.objects if item[0] != THE_WINDOW))
    waiting = set(world.line)
    for _ in range(2 * len(world.line) + 2):
        world = settled(world)
        waiting = {place for place in waiting if _state(world, place) is None}
        if not waiting:
            return
        leases = [place for place, _ in world.under("lease/")]
        _demand(bool(leases), f"{sorted(waiting)} wait and nobody holds")
        world = world._replace(over=world.over.union(leases))
    _demand(False, f"{sorted(waiting)} are never served")


def _closed(world: World) -> World:
    """The world once the window has closed the asset: at once where it revokes, else when terms have ended."""
    window = parsed(world.get(THE_WINDOW) or "")
    for _ in range(len(world.line) + 3):
        world = settled(world)
        if "Held" in _of_window(world) or _is_passed_by(world, world.get(THE_WINDOW) or ""):
            return world
        people = any("/care-" in place for place in world.line)
        if window["spec"]["whenHeld"] == "Revoke" and not people:
            break
        world = world._replace(over=world.over.union(place for place, _ in world.under("lease/")))
    raise BrokenPromise("the window never closes the asset")


@functools.cache
def settled(world: World) -> World:
    """The world once a controller has done all it wants to."""
    for _ in range(_MOST_DECISIONS):
        plan = plan_of(world)
        if plan is None or not all(holds(world, condition) for condition in plan.conditions):
            _demand(plan is None, f"a decision is never acted on: {plan}")
            return world
        check_decision(world, plan)
        for write in plan.writes:
            check_change(world.get(write.place), write)
            world = put(world, with_uid(world, (), write))
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
    """Who was told to hold, with which token, how many slots that takes, and who may write then."""

    token: int
    user: str
    slots: int
    writers: tuple[str, ...]


def _announced(world: World) -> list[Holder]:
    """Everybody who was told to hold, and still does."""
    found = []
    for _, text in (*world.under("lock/"), *world.under("lease/")):
        token, raw = _told(text), parsed(text)
        if token is not None and "status" in raw:
            slots = 1 if raw["spec"]["mode"] == "Shared" else capacity_of(world)
            user, spec = raw["spec"]["holder"]["username"], raw["spec"]
            keepers = tuple(subject["name"] for subject in spec.get("maintainers", ()))
            writers = keepers if spec["mode"] == "Maintenance" else (user,)
            found.append(Holder(token, user, slots, writers))
        elif token is not None:
            owner = raw["metadata"]["annotations"][names.OWNER_ANNOTATION].partition(" ")[2]
            found.append(Holder(token, owner, 1, (owner,)))
    return sorted(found)


def announced_in(world: World) -> list[int]:
    """The tokens of all who were told to hold, and still do."""
    return [holder.token for holder in _announced(world)]


def _named(holders: list[Holder]) -> str:
    return ", ".join(f"{holder.user} ({holder.token})" for holder in holders)


def _is_stamped(target: str) -> bool:
    return names.stamp_key(ASSET, NAMESPACE) in parsed(target)["metadata"].get("annotations", {})


def _admitted(target: Json) -> set[tuple[int, str]] | None:
    """Token and user of those whose writes the policy admits; ``None`` for anybody's."""
    meta = target["metadata"]
    if meta.get("labels", {}).get(names.FENCED_LABEL) != "true":
        return None
    stamp = stamp_of(meta.get("annotations", {}), names.stamp_key(ASSET, NAMESPACE), meta["uid"])
    if stamp is None:
        return None
    writers = (holder for holder in stamp.holders if not holder.identity.is_closing)
    return {(holder.token, holder.identity.username) for holder in writers}
