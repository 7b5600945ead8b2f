"""When a clock on the wall is changed, and what it shows in between."""

from __future__ import annotations

import dataclasses
import datetime
import functools

_BETWEEN_CHANGES = datetime.timedelta(days=28)
"""No clock is changed twice within this time."""

_SECOND = datetime.timedelta(seconds=1)
_YEARS = range(datetime.MINYEAR + 1, datetime.MAXYEAR)
_FIRST = datetime.datetime(_YEARS.start, 1, 1, tzinfo=datetime.UTC)
_LAST = datetime.datetime(_YEARS.stop, 1, 1, tzinfo=datetime.UTC)


@dataclasses.dataclass(frozen=True, slots=True)
class Stretch:
    """From ``start`` until ``end`` the clock is ``offset`` ahead of UTC, as it was ``before`` until then."""

    start: datetime.datetime
    end: datetime.datetime
    offset: datetime.timedelta
    before: datetime.timedelta

    def shown(self, moment: datetime.datetime) -> datetime.datetime:
        """What the clock shows, as a time without a zone."""
        return moment.replace(tzinfo=None) + self.offset

    def instant(self, shown: datetime.datetime) -> datetime.datetime:
        """When the clock shows that."""
        return (shown - self.offset).replace(tzinfo=datetime.UTC)


def stretch_of(zone: datetime.tzinfo, moment: datetime.datetime) -> Stretch:
    """The one that a moment lies in; a year's end is taken for one too. Raises OverflowError far from our times."""
    if not _FIRST <= moment < _LAST:
        raise OverflowError(f"{moment} is too near the ends of the calendar")
    return next(stretch for stretch in _stretches(zone, moment.year) if moment < stretch.end)


@functools.lru_cache(maxsize=256)
def _stretches(zone: datetime.tzinfo, year: int) -> tuple[Stretch, ...]:
    since = datetime.datetime(year, 1, 1, tzinfo=datetime.UTC)
    until = datetime.datetime(year + 1, 1, 1, tzinfo=datetime.UTC)
    before, found = _offset(zone, since - _SECOND), []
    while since < until:
        offset = _offset(zone, since)
        end = _change(zone, since, until) or until
        found.append(Stretch(since, end, offset, before))
        since, before = end, offset
    return tuple(found)


def _change(
    zone: datetime.tzinfo, since: datetime.datetime, until: datetime.datetime
) -> datetime.datetime | None:
    """When the clock is changed first, later than ``since`` and before ``until``."""
    before = _offset(zone, since)
    while since < until - _SECOND:
        probe = min(since + _BETWEEN_CHANGES, until - _SECOND)
        if _offset(zone, probe) != before:
            while probe - since > _SECOND:
                middle = since + (probe - since) // (2 * _SECOND) * _SECOND
                since, probe = (middle, probe) if _offset(zone, middle) == before else (since, middle)
            return probe
        since = probe
    return None


def _offset(zone: datetime.tzinfo, moment: datetime.datetime) -> datetime.timedelta:
    return moment.astimezone(zone).utcoffset() or datetime.timedelta()
