"""A state of the world: what the API server has, what two controllers are about to write, and what was promised.

An API server's compare-and-swap is modelled by what it means: a change of an object makes each write worthless
that was decided on the object as it was. So no versions are kept. A Lease's term is either running or over.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from tests.exhaustive.texts import acquisitions_in, parsed, renamed, text_of, tokens_in

Objects = tuple[tuple[str, str], ...]
"""The text of each object by its place, such as ``lease/asset.vm``, in the order of the places."""

WINDOW_LOCK = "window-a"
_KEEP_THEIR_NAMES = ("job", "window")


class Condition(NamedTuple):
    """What a live read must find before a decision is acted on: ``same``, ``absent``, or ``gone`` with a UID."""

    what: str
    place: str
    uid: str = ""


class Write(NamedTuple):
    """What will stand at a place; no text means that it is deleted. ``create`` needs the place to be empty."""

    place: str
    text: str | None
    create: bool = False
    new_term: bool = False


class Plan(NamedTuple):
    """What a controller has decided and not yet done."""

    conditions: tuple[Condition, ...]
    writes: tuple[Write, ...]


class World(NamedTuple):
    """What the API server has. ``line`` has the AssetLocks in the order of their making, ``over`` ended terms."""

    objects: Objects
    line: tuple[str, ...]
    over: frozenset[str]

    def get(self, place: str) -> str | None:
        """The object at a place."""
        return next((text for where, text in self.objects if where == place), None)

    def under(self, prefix: str) -> list[tuple[str, str]]:
        """The objects whose places begin so."""
        return [(where, text) for where, text in self.objects if where.startswith(prefix)]


class State(NamedTuple):
    """A world, the controllers' plans (a controller without one is not listed), and the highest token announced."""

    world: World
    plans: tuple[Plan, ...]
    announced: int


def put(world: World, write: Write) -> World:
    """The world after this write."""
    objects = dict(world.objects)
    line = world.line
    if write.text is None:
        del objects[write.place]
        line = tuple(place for place in line if place != write.place)
    else:
        if write.place not in objects and write.place.startswith("lock/"):
            line = (*line, write.place)
        objects[write.place] = write.text
    over = world.over - {write.place} if write.text is None or write.new_term else world.over
    return World(tuple(sorted(objects.items())), line, over)


def outdated(plan: Plan, place: str) -> Plan | None:
    """What is left of a plan once somebody has changed this object; the first conflict ends it."""
    if any(condition.what == "same" and condition.place == place for condition in plan.conditions):
        return None
    writes = []
    for write in plan.writes:
        if write.place == place and not write.create:
            break
        writes.append(write)
    return plan._replace(writes=tuple(writes)) if writes else None


def canonical(world: World, plans: Iterable[Plan], announced: int) -> State:
    """One state for all that differ in nothing but names: of equal clients, of acquisitions, of controllers.

    Tokens keep their order but are brought close together, as only their order counts; so numbers don't run off.
    """
    plans = list(plans)
    texts = texts_in(world, plans)
    tokens = tuple(sorted({0, announced}.union(*map(tokens_in, texts))))
    ids = _new_names(world.line, texts)
    if ids or tokens[-1] >= len(tokens):
        world, plans = _renamed(world, plans, tokens, ids)
        announced = tokens.index(announced)
    return State(world, tuple(sorted(plans, key=_rank)), announced)


def unused(world: World, plans: Iterable[Plan], client: str) -> str:
    """An id for a new acquisition of the client's that nothing remembers."""
    remembered = set().union(*map(acquisitions_in, texts_in(world, plans)))
    return next(uid for n in itertools.count() if (uid := f"{client}.{n}.") not in remembered)


def texts_in(world: World, plans: Iterable[Plan]) -> list[str]:
    """All that is remembered of objects anywhere."""
    texts = [text for _, text in world.objects]
    for plan in plans:
        texts += [write.text for write in plan.writes if write.text is not None]
        texts += [condition.uid for condition in plan.conditions if condition.uid]
    return texts


def with_uid(world: World, plans: Iterable[Plan], write: Write) -> Write:
    """The write as the API server takes it: a lock that a controller makes for a window gets its UID there."""
    if not write.create or write.text is None or "uid" in (raw := parsed(write.text))["metadata"]:
        return write
    uid = unused(world, plans, WINDOW_LOCK)
    return write._replace(text=text_of({**raw, "metadata": {**raw["metadata"], "uid": uid}}))


def _new_names(line: tuple[str, ...], texts: list[str]) -> tuple[tuple[str, str], ...]:
    """Old and new ids of clients and acquisitions, where they differ: locks of a kind are named by their order."""
    known = set().union(*map(acquisitions_in, texts))
    clients = {acquisition.partition(".")[0] for acquisition in known}
    locks = [place.removeprefix("lock/") for place in line]
    gone = {client for client in clients if client not in locks and not client.startswith(_KEEP_THEIR_NAMES)}
    if gone:
        everything = "".join(texts)
        locks += sorted(gone, key=everything.index)
    new = {}
    for kind in ("lock", "read", "care"):
        own = (name for name in locks if name.startswith(kind))
        new |= {old: f"{kind}-{letter}" for old, letter in zip(own, "abcdefgh", strict=False)}
    names = list(new.items())
    for client in clients:
        ids = sorted(acquisition for acquisition in known if acquisition.startswith(f"{client}."))
        names += [(old, f"{new.get(client, client)}.{n}.") for n, old in enumerate(ids)]
    return tuple(sorted((old, name) for old, name in names if old != name))


def _renamed(
    world: World, plans: list[Plan], tokens: tuple[int, ...], ids: tuple[tuple[str, str], ...]
) -> tuple[World, list[Plan]]:
    def new(text: str) -> str:
        return renamed(text, tokens, ids)

    objects = tuple(sorted((renamed(place, (), ids), new(text)) for place, text in world.objects))
    line = tuple(renamed(place, (), ids) for place in world.line)
    over = frozenset(renamed(place, (), ids) for place in world.over)
    return World(objects, line, over), [
        Plan(
            tuple(
                Condition(c.what, renamed(c.place, (), ids), renamed(c.uid, (), ids)) for c in plan.conditions
            ),
            tuple(
                w._replace(place=renamed(w.place, (), ids), text=None if w.text is None else new(w.text))
                for w in plan.writes
            ),
        )
        for plan in plans
    ]


def _rank(plan: Plan) -> tuple[object, ...]:
    return plan.conditions, tuple((write.place, write.text or "") for write in plan.writes)
