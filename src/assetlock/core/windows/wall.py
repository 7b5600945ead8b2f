"""A schedule as a clock on the wall shows it: which days, and which minutes of each.

Whole days are passed over at once, so that a question about years costs no more than their days.
"""

from __future__ import annotations

import bisect
import dataclasses
import datetime
import functools
import itertools

_TICK = datetime.timedelta(microseconds=1)
_DAY = datetime.timedelta(days=1)
_MINUTE = datetime.timedelta(minutes=1)


@dataclasses.dataclass(frozen=True)
class Wall:
    """Times that have no zone here. ``None`` for days or weekdays: any."""

    minutes: tuple[int, ...]
    months: frozenset[int]
    days: frozenset[int] | None
    weekdays: frozenset[int] | None

    def first(self, since: datetime.datetime, until: datetime.datetime) -> datetime.datetime | None:
        """The first time that fits from ``since`` on and before ``until``."""
        day = self._day_from(since.date(), until.date())
        if day is None:
            return None
        if day == since.date():
            minute = since.hour * 60 + since.minute + (since.second + since.microsecond > 0)
            index = bisect.bisect_left(self.minutes, minute)
            if index < len(self.minutes):
                return _before(_time(day, self.minutes[index]), until)
            day = self._day_from(day + _DAY, until.date())
        return None if day is None else _before(_time(day, self.minutes[0]), until)

    def last(self, until: datetime.datetime, since: datetime.datetime) -> datetime.datetime | None:
        """The last time that fits, not later than ``until`` and not before ``since``."""
        day = self._day_back(until.date(), since.date())
        if day is None:
            return None
        if day == until.date():
            index = bisect.bisect_right(self.minutes, until.hour * 60 + until.minute)
            if index:
                return _not_before(_time(day, self.minutes[index - 1]), since)
            day = self._day_back(day - _DAY, since.date())
        return None if day is None else _not_before(_time(day, self.minutes[-1]), since)

    def run(
        self, since: datetime.datetime, until: datetime.datetime, gap: datetime.timedelta
    ) -> tuple[datetime.datetime, bool]:
        """The last of those before ``until`` that follow each other by at most ``gap``, and if a longer one follows.

        ``since`` fits. Whole days are passed over, not each time.
        """
        (breaks, _), day, minute = _gaps(self.minutes, gap), since.date(), since.hour * 60 + since.minute
        while True:
            index = bisect.bisect_left(breaks, minute)
            stop = _time(day, breaks[index] if index < len(breaks) else self.minutes[-1])
            if stop >= until:
                return self.last(until - _TICK, since) or since, False
            if index < len(breaks):
                return stop, True
            following = self._day_from(day + _DAY, (stop + gap).date())
            if following is None or _time(following, self.minutes[0]) - stop > gap:
                return stop, True
            day, minute = following, self.minutes[0]
            if _time(day, minute) >= until:
                return stop, False

    def run_back(
        self, until: datetime.datetime, since: datetime.datetime, gap: datetime.timedelta
    ) -> tuple[datetime.datetime, bool]:
        """The same backwards: the first of those not before ``since``, and if a longer gap is before it."""
        _, starts = _gaps(self.minutes, gap)
        day, minute = until.date(), until.hour * 60 + until.minute
        while True:
            index = bisect.bisect_right(starts, minute) - 1
            stop = _time(day, starts[index] if index >= 0 else self.minutes[0])
            if stop < since:
                return self.first(since, until) or until, False
            if index >= 0:
                return stop, True
            before = self._day_back(day - _DAY, (stop - gap).date())
            if before is None or stop - _time(before, self.minutes[-1]) > gap:
                return stop, True
            day, minute = before, self.minutes[-1]
            if _time(day, minute) < since:
                return stop, False

    def _day_from(self, day: datetime.date, until: datetime.date) -> datetime.date | None:
        while day <= until:
            if day.month not in self.months:
                day = datetime.date(day.year + day.month // 12, day.month % 12 + 1, 1)
            elif self._fits(day):
                return day
            else:
                day += _DAY
        return None

    def _day_back(self, day: datetime.date, since: datetime.date) -> datetime.date | None:
        while day >= since:
            if day.month not in self.months:
                day = day.replace(day=1) - _DAY
            elif self._fits(day):
                return day
            else:
                day -= _DAY
        return None

    def _fits(self, day: datetime.date) -> bool:
        by_day = self.days is None or day.day in self.days
        by_weekday = self.weekdays is None or day.isoweekday() % 7 in self.weekdays
        if self.days is None or self.weekdays is None:
            return by_day and by_weekday
        return by_day or by_weekday


@functools.lru_cache(maxsize=1024)
def _gaps(minutes: tuple[int, ...], gap: datetime.timedelta) -> tuple[list[int], list[int]]:
    """The minutes of a day after which, and before which, is nothing for more than this time."""
    longest = gap / _MINUTE
    found = [(a, b) for a, b in itertools.pairwise(minutes) if b - a > longest]
    return [a for a, _ in found], [b for _, b in found]


def _time(day: datetime.date, minute: int) -> datetime.datetime:
    return datetime.datetime(day.year, day.month, day.day, minute // 60, minute % 60)


def _before(found: datetime.datetime, until: datetime.datetime) -> datetime.datetime | None:
    return found if found < until else None


def _not_before(found: datetime.datetime, since: datetime.datetime) -> datetime.datetime | None:
    return found if found >= since else None
