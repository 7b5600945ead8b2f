"""When a window is active: a schedule with a duration, or one start and end.

A duration is elapsed time: 22:00 for 6 h ends six hours later, also in the night in which the clocks change.
Occurrences that touch or overlap are one period, so a window that is longer than its schedule's steps never
closes between two of them. A period contains its start and not its end.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import itertools
import zoneinfo
from collections.abc import Iterator
from typing import Protocol

from assetlock.core.windows.cron import BadSchedule, Cron
from assetlock.model.durations import parse_duration
from assetlock.model.window import MaintenanceWindowSpec

LONGEST = datetime.timedelta(days=366)
"""No window lasts longer."""

MOST_OCCURRENCES = 2_000
"""So many are looked at to find where a period begins or ends; of a longer one that is not known."""

_TICK = datetime.timedelta(microseconds=1)
_LONG_AGO = datetime.datetime.min.replace(tzinfo=datetime.UTC)
_FIRST_LOOK_BACK = datetime.timedelta(hours=1)
_FARTHEST_LOOK_BACK = datetime.timedelta(days=366 * 9)
"""29 February comes after eight years at most."""


class BadWindow(ValueError):
    """A window whose times can't be meant; ``field`` is the one to change."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


@dataclasses.dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time; ``None`` stands for an end (or a start) too far away to be known."""

    start: datetime.datetime | None
    end: datetime.datetime | None


class Calendar(Protocol):
    """The periods of a window."""

    def current(self, now: datetime.datetime) -> Period | None:
        """The period that contains ``now``."""
        ...

    def next(self, now: datetime.datetime) -> Period | None:
        """The first period that starts later than ``now``."""
        ...

    def last(self, now: datetime.datetime) -> Period | None:
        """The latest period that had ended by ``now``."""
        ...

    def periods(self, now: datetime.datetime) -> Iterator[Period]:
        """The period that contains ``now``, and those that follow."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class _Stretch:
    """From ``start`` until ``end`` the answer is this period."""

    start: datetime.datetime
    end: datetime.datetime
    period: Period

    def __contains__(self, moment: datetime.datetime) -> bool:
        return self.start <= moment < self.end


@dataclasses.dataclass(frozen=True, slots=True)
class Once:
    """One period."""

    period: Period
    start: datetime.datetime
    end: datetime.datetime

    def current(self, now: datetime.datetime) -> Period | None:
        """The period, while it lasts."""
        return self.period if self.start <= now < self.end else None

    def next(self, now: datetime.datetime) -> Period | None:
        """The period, before it starts."""
        return self.period if now < self.start else None

    def last(self, now: datetime.datetime) -> Period | None:
        """The period, once it is over."""
        return self.period if self.end <= now else None

    def periods(self, now: datetime.datetime) -> Iterator[Period]:
        """The period, until it is over."""
        if now < self.end:
            yield self.period


class Recurring:
    """A period of the same length each time that a schedule fires.

    Remembers the stretch of time that it was asked about last, as one is asked about the present again and again.
    """

    def __init__(self, cron: Cron, duration: datetime.timedelta) -> None:
        self._cron = cron
        self._duration = duration
        self._inside = _Stretch(_LONG_AGO, _LONG_AGO, Period(None, None))
        self._before = _Stretch(_LONG_AGO, _LONG_AGO, Period(None, None))

    def current(self, now: datetime.datetime) -> Period | None:
        """The period that contains ``now``."""
        if now in self._inside:
            return self._inside.period
        if now in self._before:
            return None
        fired = self._latest(now, within=self._duration)
        if fired is None or now >= fired + self._duration:
            return None
        self._inside = self._stretch_of(fired)
        return self._inside.period

    def next(self, now: datetime.datetime) -> Period | None:
        """The first period that starts later than ``now``."""
        if now not in self._before:
            current = self.current(now)
            following = next((p for p in self.periods(now) if p != current), None)
            if following is None or following.start is None:
                return None
            since = current.end if current and current.end else now
            self._before = _Stretch(since, following.start, following)
        return self._before.period

    def periods(self, now: datetime.datetime) -> Iterator[Period]:
        """The period that contains ``now``, and those that follow."""
        current = self.current(now)
        if current is not None:
            yield current
            if current.end is None:
                return
        start = end = current.end if current and current.end else now
        count = 0
        for fired in self._cron.after(end):
            if count and fired > end:
                yield Period(start, end)
                count = 0
            if count == MOST_OCCURRENCES:
                yield Period(start, None)
                return
            start, end, count = fired if count == 0 else start, fired + self._duration, count + 1

    def last(self, now: datetime.datetime) -> Period | None:
        """The latest period that had ended by ``now``."""
        current = self.current(now)
        if current is not None and current.start is None:
            return None
        moment = current.start - _TICK if current and current.start else now
        fired = self._latest(moment, within=_FARTHEST_LOOK_BACK)
        return self._stretch_of(fired).period if fired else None

    def _latest(self, moment: datetime.datetime, *, within: datetime.timedelta) -> datetime.datetime | None:
        """The last time that the schedule fired by ``moment``, if that was so shortly before."""
        back = min(_FIRST_LOOK_BACK, within)
        while True:
            latest = None
            for fired in self._cron.after(moment - back - _TICK):
                if fired > moment:
                    break
                latest = fired
            if latest is not None or back >= within:
                return latest
            back = min(2 * back, within)

    def _stretch_of(self, fired: datetime.datetime) -> _Stretch:
        (start, start_known), (end, end_known) = self._start_of(fired), self._end_of(fired)
        return _Stretch(start, end, Period(start if start_known else None, end if end_known else None))

    def _start_of(self, fired: datetime.datetime) -> tuple[datetime.datetime, bool]:
        """Where occurrences that touch begin, or an earlier one of them, and whether it is the first."""
        start = fired
        for _ in range(MOST_OCCURRENCES):
            earlier = next(self._cron.after(start - self._duration - _TICK), start)
            if earlier >= start:
                return start, True
            start = earlier
        return start, False

    def _end_of(self, fired: datetime.datetime) -> tuple[datetime.datetime, bool]:
        """Where occurrences that touch end, or a later one of them does, and whether it is the last."""
        end = fired + self._duration
        for following in itertools.islice(self._cron.after(fired), MOST_OCCURRENCES):
            if following > end:
                return end, True
            end = following + self._duration
        return end, False


def calendar_of(spec: MaintenanceWindowSpec) -> Calendar:
    """The periods that a window speaks of; raises BadWindow."""
    if spec.schedule is None:
        return _once(spec)
    if spec.start is not None or spec.end is not None:
        raise BadWindow("schedule", "either schedule and duration, or start and end")
    if spec.duration is None:
        raise BadWindow("duration", "is missing: how long the window lasts each time")
    return _recurring(spec.schedule, spec.duration, spec.time_zone)


@functools.lru_cache(maxsize=1024)
def _recurring(schedule: str, duration: str, time_zone: str) -> Recurring:
    """Kept, as a calendar remembers the period that it looked at last."""
    try:
        length = parse_duration(duration)
    except ValueError as error:
        raise BadWindow("duration", str(error)) from error
    if not datetime.timedelta() < length <= LONGEST:
        raise BadWindow("duration", f"{duration} is not longer than zero and at most {LONGEST.days} days")
    zone = zone_of(time_zone)
    try:
        return Recurring(Cron.parse(schedule, zone), length)
    except BadSchedule as error:
        raise BadWindow("schedule", str(error)) from error


def zone_of(name: str) -> zoneinfo.ZoneInfo:
    """The time zone of this name; raises BadWindow."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (ValueError, KeyError, OSError):
        raise BadWindow(
            "timeZone", f"there is no time zone {name!r}; names are like Europe/Berlin or UTC"
        ) from None


def _once(spec: MaintenanceWindowSpec) -> Once:
    if spec.start is None or spec.end is None:
        missing = "start" if spec.start is None else "end"
        raise BadWindow(missing, "is missing: either schedule and duration, or start and end")
    if spec.end <= spec.start:
        raise BadWindow("end", "must be later than start")
    if spec.end - spec.start > LONGEST:
        raise BadWindow("end", f"is more than {LONGEST.days} days later than start")
    return Once(Period(spec.start, spec.end), spec.start, spec.end)
