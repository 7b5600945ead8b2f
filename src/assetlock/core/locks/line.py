"""The AssetLocks of one asset in order, and those of them that a decision looks at.

A decision is made from the head of the line, so that it costs the same however long the line is: of those who wait
in turn it needs the first ones and those whose time is over; of those that have ended, the ones that are to be
forgotten and the highest tokens. All others are counted. Whatever is not plainly one of these is always looked at.
"""

from __future__ import annotations

import bisect
import dataclasses
import datetime
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeAlias

from assetlock.core.locks import queue
from assetlock.core.locks.lock import is_choosing, is_joint, steps_aside, token_told
from assetlock.core.observation import Behind
from assetlock.core.windows.window_locks import is_windows
from assetlock.model.assetlock import AssetLock
from assetlock.model.durations import parse_duration

MOST_DUE = 10
"""So many of those whose time is over are looked at together, and so many of the highest tokens."""

TimeOfDay: TypeAlias = Callable[[float], datetime.datetime]
"""The wall clock's time for one on the monotonic clock."""

_Key: TypeAlias = tuple[Any, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class _Filed:
    """A lock, and where it stands: in each of these lists under that key."""

    lock: AssetLock
    keys: tuple[tuple[list[_Key], _Key], ...] = ()
    rank: _Key | None = None


class Line:
    """AssetLocks about one asset, by UID."""

    def __init__(self, asset: str) -> None:
        self._asset = asset
        self._filed: dict[str, _Filed] = {}
        self._apart: dict[str, None] = {}
        self._unshown: dict[str, None] = {}
        self._waiting: list[_Key] = []
        self._by_ttl: list[_Key] = []
        self._gives_up_since_seen: list[_Key] = []
        self._gives_up_since_created: list[_Key] = []
        self._to_forget: list[_Key] = []
        self._tokens: list[_Key] = []

    def __len__(self) -> int:
        return len(self._filed)

    def __iter__(self) -> Iterator[AssetLock]:
        return (filed.lock for filed in self._filed.values())

    def add(self, lock: AssetLock, seen: float) -> None:
        """Take in a lock in place of an earlier version; ``seen`` is when it was first seen, in seconds."""
        uid = lock.metadata.uid
        self.discard(uid)
        if _waits_in_turn(lock):
            self._filed[uid] = self._as_waiting(lock, seen)
            if not is_joint(lock) and lock.status.queue_position is None:
                self._unshown[uid] = None
        elif _is_past(lock):
            self._filed[uid] = self._as_past(lock)
        else:
            self._filed[uid] = _Filed(lock)
            self._apart[uid] = None
        for where, key in self._filed[uid].keys:
            bisect.insort(where, key)

    def discard(self, uid: str) -> None:
        """Take a lock out, if it is there."""
        filed = self._filed.pop(uid, None)
        if filed is None:
            return
        self._apart.pop(uid, None)
        self._unshown.pop(uid, None)
        for where, key in filed.keys:
            del where[bisect.bisect_left(where, key)]

    def _as_waiting(self, lock: AssetLock, seen: float) -> _Filed:
        uid, rank, wait = lock.metadata.uid, queue.rank(lock), parse_duration(lock.spec.wait)
        keys = [
            (self._waiting, rank),
            (self._by_ttl, (lock.spec.ttl or "", *rank)),
            (self._gives_up_since_seen, (seen + wait.total_seconds(), uid)),
        ]
        created = lock.metadata.creation_timestamp
        if created is not None:
            keys.append((self._gives_up_since_created, (created + queue.CREATION_PRECISION + wait, uid)))
        return _Filed(lock, tuple(keys), rank)

    def _as_past(self, lock: AssetLock) -> _Filed:
        uid, forget_at = lock.metadata.uid, queue.forget_at(lock)
        keys: list[tuple[list[_Key], _Key]] = []
        if forget_at is not None and lock.metadata.deletion_timestamp is None:
            keys.append((self._to_forget, (forget_at, uid)))
        token = token_told(lock, self._asset) or lock.status.fencing_token
        if token is not None:
            keys.append((self._tokens, (token, uid)))
        return _Filed(lock, tuple(keys))

    @property
    def apart(self) -> Iterator[AssetLock]:
        """Those that neither wait in turn nor are simply over."""
        return (self._filed[uid].lock for uid in self._apart)

    @property
    def waiting(self) -> int:
        """How many wait in turn."""
        return len(self._waiting)

    def is_far_back(self, uid: str) -> bool:
        """Whether it waits in turn, behind those that are looked at."""
        place = self._place(uid)
        return place is not None and place >= queue.SHOWN

    def _place(self, uid: str) -> int | None:
        filed = self._filed.get(uid)
        if filed is None or filed.rank is None:
            return None
        return bisect.bisect_left(self._waiting, filed.rank)

    def unshown(self, most: int) -> list[str]:
        """Of those far back some whose status says nothing yet of their place."""
        return list(itertools.islice(filter(self.is_far_back, self._unshown), most))

    def outdated(self, places: range, most: int) -> tuple[list[str], int]:
        """Of those at these places the first ones that are shown far from where they are, and where to go on.

        A lock over several assets shows its place itself.
        """
        found: list[str] = []
        for place, rank in enumerate(self._waiting[places.start : places.stop], places.start + 1):
            lock = self._filed[rank[-1]].lock
            if not is_joint(lock) and queue.is_shown_far_off(lock, place):
                found.append(lock.metadata.uid)
                if len(found) == most:
                    return found, place
        return found, places.stop

    def look(
        self,
        now: datetime.datetime,
        time_of_day: TimeOfDay,
        *,
        concerned: Collection[str] = (),
        each_ttl: bool = False,
    ) -> tuple[tuple[AssetLock, ...], Behind]:
        """What a decision needs: locks, those ``concerned`` (by UID) among them, and what is behind them.

        ``each_ttl``: the first of those that ask for the same time, as it may depend on that who is next.
        """
        lists = (self._gives_up_since_seen, self._gives_up_since_created, self._to_forget)
        moments: tuple[Callable[[Any], datetime.datetime], ...] = (time_of_day, _as_is, _as_is)
        over = [list(_until(now, of, moment)) for of, moment in zip(lists, moments, strict=True)]
        given_up, besides = {*over[0], *over[1]}, [uid for uid in concerned if uid in self._filed]
        uids = dict.fromkeys(self._apart)
        uids |= dict.fromkeys(self._first(given_up.union(besides)))
        uids |= dict.fromkeys(uid for due in over for uid in due[:MOST_DUE])
        uids |= dict.fromkeys(key[-1] for key in self._tokens[-MOST_DUE:])
        uids |= dict.fromkeys(besides)
        if each_ttl:
            uids |= dict.fromkeys(self._first_of_each_ttl(given_up.union(besides)))
        left_out = given_up - uids.keys()
        looked_at = sum(self._filed[uid].rank is not None for uid in uids)
        following = (
            moment(of[len(due)][0])
            for of, moment, due in zip(lists, moments, over, strict=True)
            if len(due) < len(of)
        )
        behind = Behind(
            count=len(self._waiting) - looked_at - len(left_out),
            next_deadline=min(following, default=None),
            ahead=self._ahead(uids, left_out),
        )
        return tuple(self._filed[uid].lock for uid in uids), behind

    def _first(self, besides: Collection[str]) -> Iterator[str]:
        """The first in line who wait on, and have no Lease yet."""
        uids = (rank[-1] for rank in self._waiting)
        return itertools.islice((uid for uid in uids if uid not in besides), queue.SHOWN)

    def _first_of_each_ttl(self, besides: Collection[str]) -> Iterator[str]:
        index = 0
        while index < len(self._by_ttl):
            ttl, *_, uid = self._by_ttl[index]
            if uid in besides:
                index += 1
            else:
                yield uid
                index = bisect.bisect_left(self._by_ttl, (f"{ttl}\0",))

    def _ahead(self, uids: Iterable[str], left_out: Iterable[str]) -> dict[str, int]:
        """How many that wait on and are not looked at are before each of these, where there are any."""
        places = sorted((place, uid) for uid in uids if (place := self._place(uid)) is not None)
        gone = sorted(place for uid in left_out if (place := self._place(uid)) is not None)
        ahead = ((uid, place - n - bisect.bisect(gone, place)) for n, (place, uid) in enumerate(places))
        return {uid: n for uid, n in ahead if n}


def _until(
    now: datetime.datetime, of: list[_Key], moment: Callable[[Any], datetime.datetime]
) -> Iterator[str]:
    return (key[-1] for key in itertools.takewhile(lambda key: moment(key[0]) <= now, of))


def _as_is(moment: datetime.datetime) -> datetime.datetime:
    return moment


def _waits_in_turn(lock: AssetLock) -> bool:
    """Whether nothing tells it from others but its rank, its deadline and how long it is to last."""
    return (
        queue.is_pending(lock)
        and lock.metadata.deletion_timestamp is None
        and lock.spec.holder is not None
        and not queue.is_first(lock)
        and queue.waits_at_all(lock)
        and lock.spec.take_over is None
        and not lock.status.assets
        and lock.status.fencing_token is None
        and not is_choosing(lock)
        and not steps_aside(lock)
    )


def _is_past(lock: AssetLock) -> bool:
    """Whether it has ended, and no window is to have another one for it."""
    return queue.has_ended(lock) and not is_windows(lock)
