"""When a window is active: a schedule with a duration, or one start and end.

A duration is elapsed time: 22:00 for 6 h ends six hours later, also in the night in which the clocks change.
Occurrences that touch or overlap are one period, so a window that is longer than its schedule's steps never
closes between two of them. A period contains its start and not its end.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import zoneinfo
from collections.abc import Iterator
from typing import Protocol

from assetlock.core.windows.cron import RAREST, BadSchedule, Cron
from assetlock.model.durations import parse_duration
from assetlock.model.window import MaintenanceWindowSpec

LONGEST = datetime.timedelta(days=366)
"""No window lasts longer."""

FARTHEST = datetime.timedelta(days=2 * 366)
"""So far a period is followed to find where it begins or ends; of a longer one that is not known."""

MOST_KEPT = 1_000

_TICK = datetime.timedelta(microseconds=1)
_LONG_AGO = datetime.datetime.min.replace(tzinfo=datetime.UTC)


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

    Remembers the stretch of time that it was asked about last, and the periods that follow, as one is asked about
    the present again and again.
    """

    def __init__(self, cron: Cron, duration: datetime.timedelta) -> None:
        self._cron = cron
        self._duration = duration
        self._inside = _Stretch(_LONG_AGO, _LONG_AGO, Period(None, None))
        self._before = _Stretch(_LONG_AGO, _LONG_AGO, Period(None, None))
        self._following: dict[datetime.datetime, Period | None] = {}

    def current(self, now: datetime.datetime) -> Period | None:
        """The period that contains ``now``."""
        if now in self._inside:
            return self._inside.period
        if now in self._before:
            return None
        fired = self._cron.before(now, within=self._duration)
        if fired is None or now >= fired + self._duration:
            return None
        self._inside = self._stretch_of(fired)
        return self._inside.period

    def next(self, now: datetime.datetime) -> Period | None:
        """The first period that starts later than ``now``."""
        if now not in self._before:
            current = self.current(now)
            if current is not None and current.end is None:
                return None
            since = current.end if current and current.end else now
            following = self._after(since)
            if following is None or following.start is None:
                return None
            self._before = _Stretch(since, following.start, following)
        return self._before.period

    def periods(self, now: datetime.datetime) -> Iterator[Period]:
        """The period that contains ``now``, and those that follow in the next years."""
        period, farthest = self.current(now) or self.next(now), now + RAREST
        while period is not None:
            yield period
            if period.end is None or period.end > farthest:
                return
            period = self._after_end(period.end)

    def last(self, now: datetime.datetime) -> Period | None:
        """The latest period that had ended by ``now``."""
        current = self.current(now)
        if current is not None and current.start is None:
            return None
        moment = current.start - _TICK if current and current.start else now
        fired = self._cron.before(moment)
        return self._stretch_of(fired).period if fired else None

    def _after_end(self, end: datetime.datetime) -> Period | None:
        """The period that follows one that ends then; kept, as the same ones are asked for again and again."""
        if end not in self._following:
            if len(self._following) >= MOST_KEPT:
                self._following.clear()
            self._following[end] = self._after(end)
        return self._following[end]

    def _after(self, moment: datetime.datetime) -> Period | None:
        """The first period that starts later; inside of none."""
        fired = self._cron.after(moment)
        if fired is None:
            return None
        last = self._cron.last_of_run(fired, self._duration, within=FARTHEST)
        return Period(fired, None if last is None else last + self._duration)

    def _stretch_of(self, fired: datetime.datetime) -> _Stretch:
        first = self._cron.first_of_run(fired, self._duration, within=FARTHEST)
        last = self._cron.last_of_run(fired, self._duration, within=FARTHEST)
        end = None if last is None else last + self._duration
        return _Stretch(first or fired - FARTHEST, end or fired + FARTHEST, Period(first, end))


def never_ends(spec: MaintenanceWindowSpec, now: datetime.datetime) -> str | None:
    """What it means that a window is active now and, as far as can be seen, from then on; raises BadWindow."""
    current = calendar_of(spec).current(now)
    if current is None or current.end is not None:
        return None
    meaning = "no asset is ever closed" if spec.kind == "Allow" else "its assets stay closed"
    return f"{spec.duration} last until {spec.schedule!r} comes again, so it never ends and {meaning}"


def never_starts(spec: MaintenanceWindowSpec, now: datetime.datetime) -> str | None:
    """What it means that a window does not come any more; raises BadWindow."""
    calendar = calendar_of(spec)
    if calendar.current(now) is not None or calendar.next(now) is not None:
        return None
    meaning = "its assets stay closed" if spec.kind == "Allow" else "no asset is ever closed"
    return f"it does not come again, so {meaning}"


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
