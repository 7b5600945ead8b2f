"""What etcd is to the API server: versioned objects, one counter, compare-and-swap, and a history to watch.

Promises: a commit happens only if the object still is the version it was decided on; revisions only grow; whoever
listens sees every commit, in order, in the very step in which it happens.
"""

import json
import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from tests.sim.kinds import Served

Json = dict[str, Any]


PARTIAL = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}
_ENCODER = json.JSONEncoder(separators=(",", ":"))


def encode(value: Any) -> bytes:
    """A JSON value as it goes over the wire."""
    return _ENCODER.encode(value).encode()


class Key(NamedTuple):
    """Where an object lives; keys sort as etcd would."""

    group: str
    plural: str
    namespace: str
    name: str


class Moved(Exception):
    """The object is no longer the version that the commit was decided on."""


@dataclass(frozen=True)
class Version:
    """One state of one object. `obj` is shared by all readers, and in part by later versions: it never changes."""

    obj: Json
    revision: int

    @cached_property
    def body(self) -> bytes:
        """The object as JSON."""
        return encode(self.obj)

    @cached_property
    def partial(self) -> bytes:
        """Its metadata as JSON."""
        return encode(PARTIAL | {"metadata": self.obj["metadata"]})


@dataclass(frozen=True, slots=True)
class Change:
    """One commit: `old` is None for a creation, `new` is None for a deletion. `obj` is the state that it left."""

    revision: int
    key: Key
    old: Version | None
    new: Version | None
    user: str
    subresource: str
    time: float

    @property
    def obj(self) -> Json:
        """The object after the change; of a deleted one, the last state."""
        version = self.new or self.old
        assert version is not None
        return version.obj

    @property
    def operation(self) -> str:
        """CREATE, UPDATE or DELETE."""
        if self.old is None:
            return "CREATE"
        return "UPDATE" if self.new else "DELETE"


@dataclass
class Log:
    """All changes of one resource, and who is told of the next one."""

    changes: list[Change] = field(default_factory=list)
    listeners: dict[Callable[[Change], None], None] = field(default_factory=dict)

    def add(self, change: Change) -> None:
        """Take in a change, and tell of it."""
        self.changes.append(change)
        for listener in tuple(self.listeners):
            listener(change)


class Store:
    """The objects and their history."""

    def __init__(self, *, seed: int | str = 0, time: Callable[[], float] = lambda: 0.0) -> None:
        self.revision = 1
        self.compacted = 0
        self.on_commit: list[Callable[[Change], None]] = []
        self._random = random.Random(f"store/{seed}")
        self._time = time
        self._objects: dict[Key, Version] = {}
        self._logs: dict[tuple[str, str], Log] = {}

    def get(self, key: Key) -> Version | None:
        """The current version, if there is one."""
        return self._objects.get(key)

    def log(self, served: Served) -> Log:
        """The history of a resource."""
        return self._logs.setdefault((served.group, served.plural), Log())

    def select(
        self, served: Served, namespace: str = "", *, at: int | None = None
    ) -> list[tuple[Key, Version]]:
        """All objects of a resource in key order, now or as they were at an older revision."""
        source = self._objects if at is None or at >= self.revision else self._as_of(served, at)
        found = [
            item
            for item in source.items()
            if item[0].plural == served.plural
            and item[0].group == served.group
            and namespace in ("", item[0].namespace)
        ]
        return sorted(found, key=lambda item: item[0])

    def objects(self, served: Served, namespace: str = "") -> Iterator[Json]:
        """The current objects of a resource, for those who judge a simulation. Not to be changed."""
        return (version.obj for _, version in self.select(served, namespace))

    def _as_of(self, served: Served, revision: int) -> dict[Key, Version]:
        objects: dict[Key, Version] = {}
        for change in self.log(served).changes:
            if change.revision > revision:
                break
            if change.new is None:
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.new
        return objects

    def commit(
        self,
        served: Served,
        key: Key,
        old: Version | None,
        new: Json | None,
        *,
        user: str = "",
        subresource: str = "",
    ) -> Version:
        """Put `new` (or, with None, nothing) where `old` is, or raise `Moved`. The store keeps `new`."""
        if self._objects.get(key) is not old:
            raise Moved(key)
        self.revision += 1
        if new is None:
            assert old is not None
            del self._objects[key]
            # Watchers see a deleted object at the revision of its deletion.
            metadata = {**old.obj["metadata"], "resourceVersion": str(self.revision)}
            left = {**old.obj, "metadata": metadata}
            result = Version(left, self.revision)
            change = Change(self.revision, key, result, None, user, subresource, self._time())
        else:
            new["metadata"]["resourceVersion"] = str(self.revision)
            result = self._objects[key] = Version(new, self.revision)
            change = Change(self.revision, key, old, result, user, subresource, self._time())
        self.log(served).add(change)
        for listener in self.on_commit:
            listener(change)
        return result

    def compact(self, revision: int | None = None) -> None:
        """Forget the history up to a revision (default: all of it): older watches and pages get 410."""
        self.compacted = self.revision if revision is None else revision

    def new_uid(self) -> str:
        """A UUID that depends on the seed alone."""
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def new_suffix(self) -> str:
        """Five characters for `generateName`."""
        return "".join(self._random.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
