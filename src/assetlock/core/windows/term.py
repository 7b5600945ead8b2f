"""How long a lock's term is: as asked, within the limits, and not into a time in which the asset is closed.

A lock that is granted before a window ends when that begins. A window's own lock ends when the asset opens again.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from assetlock.core.locks.lease_claim import LeaseClaim
from assetlock.core.locks.ttl import effective_ttl
from assetlock.core.observation import Observation
from assetlock.core.windows.calendar import LONGEST
from assetlock.core.windows.closures import Closures
from assetlock.core.windows.window_locks import is_windows
from assetlock.model.assetlock import AssetLock

TOLERANCE = datetime.timedelta(seconds=2)
"""A term that is to end at a certain moment may miss it by this: Leases last whole seconds."""

_LEAST = datetime.timedelta(seconds=1)


def length(observation: Observation, lock: AssetLock) -> datetime.timedelta:
    """How long a term of this lock lasts that begins now, in whole seconds."""
    if is_windows(lock):
        return datetime.timedelta(seconds=math.ceil(_until_open(observation).total_seconds()))
    asked = effective_ttl(lock, observation.asset, observation.limits)
    closes = closes_at(observation, lock)
    return asked if closes is None else _in_seconds(min(asked, closes - observation.now))


def is_right(observation: Observation, lock: AssetLock, held: LeaseClaim) -> bool:
    """Whether the present term of a holder is as it ought to be; if not, a new one begins."""
    remaining = held.term_ends - observation.now
    if is_windows(lock):
        wanted = _until_open(observation)
        return remaining > wanted / 2 if wanted == LONGEST else abs(remaining - wanted) <= TOLERANCE
    return are_right([observation], lock, held)


def are_right(observations: Sequence[Observation], lock: AssetLock, held: LeaseClaim) -> bool:
    """The same for a lock over several assets, of which the strictest counts. A window's lock is never that."""
    asked = min(effective_ttl(lock, each.asset, each.limits) for each in observations)
    if held.renewed is None and held.term.lease.spec.lease_duration_seconds == int(asked.total_seconds()):
        return True
    if any(_is_closed(observation, lock) for observation in observations):
        return True  # What was cut short to the start is over in a moment: no term begins while the asset is closed.
    closes = min(filter(None, (closes_at(observation, lock) for observation in observations)), default=None)
    return closes is not None and held.renewed is None and abs(held.term_ends - closes) <= TOLERANCE


def closes_at(observation: Observation, lock: AssetLock) -> datetime.datetime | None:
    """When the asset is closed next for such a lock; ``None`` if that is not known, or past."""
    if lock.spec.mode == "Maintenance" or not observation.windows:
        return None
    return Closures(observation.asset, observation.windows).next(observation.now)


def _is_closed(observation: Observation, lock: AssetLock) -> bool:
    if lock.spec.mode == "Maintenance" or not observation.windows:
        return False
    return Closures(observation.asset, observation.windows).at(observation.now) is not None


def _until_open(observation: Observation) -> datetime.timedelta:
    closure = Closures(observation.asset, observation.windows).at(observation.now)
    if closure is None:
        return _LEAST
    return min(closure.until - observation.now, LONGEST) if closure.until else LONGEST


def _in_seconds(span: datetime.timedelta) -> datetime.timedelta:
    return max(_LEAST, datetime.timedelta(seconds=math.floor(span.total_seconds())))
