"""Cron schedules in the dialect of Kubernetes' CronJob, and the instants at which they fire.

Five fields (minute, hour, day of the month, month, day of the week) of ``*``, ``?``, numbers, ranges, steps and
lists, names of months and days, and the macros ``@hourly`` to ``@yearly``. As in a CronJob, a date fits when the
day of the month *or* the day of the week does, if neither is ``*``. Seconds, ``@every``, ``TZ=``, ``L``, ``W`` and
``#`` are refused.

When the clocks change, what has a fixed time of day happens once: in the hour that comes twice at the first, in the
hour that does not exist when that is over. What happens every hour or every few minutes goes on evenly.
"""

from __future__ import annotations

import dataclasses
import datetime

from assetlock.core.windows.wall import Wall
from assetlock.core.windows.zones import Stretch, stretch_of

LONGEST_TEXT = 128

MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

RAREST = datetime.timedelta(days=366 * 9)
"""29 February comes after eight years at most."""

_TICK = datetime.timedelta(microseconds=1)
_SOME_DAY = datetime.datetime(2024, 1, 1)


class BadSchedule(ValueError):
    """A text that is no schedule of this dialect, or never fires; says which field and why."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def number(self, text: str) -> int:
        if text.upper() in self.names:
            return self.names.index(text.upper()) + self.low
        if not (text.isascii() and text.isdigit() and len(text) <= 2 and self.low <= int(text) <= self.high):
            raise BadSchedule(f"{self.name}: {text!r} is not between {self.low} and {self.high}")
        return int(text)

    def values(self, term: str) -> set[int]:
        """What one term of a list stands for."""
        span, slash, step = term.partition("/")
        if slash and not (step.isascii() and step.isdigit() and 0 < int(step) <= self.high):
            raise BadSchedule(f"{self.name}: {term!r} has no step between 1 and {self.high}")
        if span in ("*", "?"):
            first, last = self.low, self.high
        else:
            begin, dash, end = span.partition("-")
            first = self.number(begin)
            last = self.number(end) if dash else (self.high if slash else first)
        if last < first:
            raise BadSchedule(f"{self.name}: {span!r} ends before it begins")
        return set(range(first, last + 1, int(step) if slash else 1))


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of the month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of the week", 0, 6, _DAYS),
)
_TIME_OF_DAY = 2


@dataclasses.dataclass(frozen=True)
class Cron:
    """A schedule that has been read, and the zone of its clock.

    Nothing here looks at each time that it fires: what is asked is found from days and the minutes of a day.
    ``evenly``: it has no fixed times of day, so that it goes on when the clocks change.
    """

    wall: Wall
    evenly: bool
    zone: datetime.tzinfo

    @classmethod
    def parse(cls, text: str, zone: datetime.tzinfo) -> Cron:
        """Read a schedule; raises BadSchedule."""
        fields = _canonical(text)
        minutes, hours, days, months, weekdays = map(_values, _FIELDS, fields)
        wall = Wall(
            minutes=tuple(sorted(60 * hour + minute for hour in hours for minute in minutes)),
            months=frozenset(months),
            days=None if fields[2] == "*" else frozenset(days),
            weekdays=None if fields[4] == "*" else frozenset(weekdays),
        )
        if wall.first(_SOME_DAY, _SOME_DAY + RAREST) is None:
            raise BadSchedule(f"{text!r} never comes: no such day is in the calendar")
        return cls(wall, any(field.startswith("*") for field in fields[:_TIME_OF_DAY]), zone)

    def after(self, moment: datetime.datetime) -> datetime.datetime | None:
        """The first instant later than ``moment`` at which it fires, in UTC; ``None`` if there is none in years."""
        since, until = moment.astimezone(datetime.UTC) + _TICK, moment + RAREST
        while since < until:
            stretch = stretch_of(self.zone, since)
            if since == stretch.start and self._catches_up(stretch):
                return since
            start = max(stretch.shown(since), self._begins(stretch))
            shown = self.wall.first(start, stretch.shown(stretch.end))
            if shown is not None:
                return stretch.instant(shown)
            since = stretch.end
        return None

    def before(
        self, moment: datetime.datetime, *, within: datetime.timedelta = RAREST
    ) -> datetime.datetime | None:
        """The last instant by ``moment`` at which it fired, in UTC; ``None`` for none ``within`` that time."""
        until = moment.astimezone(datetime.UTC)
        since = until - within
        while until >= since:
            stretch = stretch_of(self.zone, until)
            begins = max(self._begins(stretch), stretch.shown(max(stretch.start, since)))
            shown = self.wall.last(stretch.shown(until), begins)
            if shown is not None:
                return stretch.instant(shown)
            if stretch.start >= since and self._catches_up(stretch):
                return stretch.start
            until = stretch.start - _TICK
        return None

    def last_of_run(
        self, fired: datetime.datetime, gap: datetime.timedelta, *, within: datetime.timedelta
    ) -> datetime.datetime | None:
        """The last from ``fired`` on of those at most ``gap`` apart; ``None`` for none ``within`` that time."""
        until = fired + within
        while fired < until:
            stretch = stretch_of(self.zone, fired)
            if stretch.shown(fired) >= self._begins(stretch) and self._is_on(stretch.shown(fired)):
                last, ends = self.wall.run(stretch.shown(fired), stretch.shown(stretch.end), gap)
                fired = stretch.instant(last)
                if ends and fired + gap < stretch.end:
                    return fired
            following = self.after(fired)
            if following is None or following - fired > gap:
                return fired
            fired = following
        return None

    def first_of_run(
        self, fired: datetime.datetime, gap: datetime.timedelta, *, within: datetime.timedelta
    ) -> datetime.datetime | None:
        """The same backwards: the first of those up to ``fired``."""
        since = fired - within
        while fired > since:
            stretch = stretch_of(self.zone, fired)
            begins = self._begins(stretch)
            if stretch.shown(fired) >= begins and self._is_on(stretch.shown(fired)):
                first, starts = self.wall.run_back(stretch.shown(fired), begins, gap)
                fired = stretch.instant(first)
                if starts and fired - gap >= stretch.start and first - gap >= begins:
                    return fired
            earlier = self.before(fired - _TICK, within=gap)
            if earlier is None:
                return fired
            fired = earlier
        return None

    def _is_on(self, shown: datetime.datetime) -> bool:
        return self.wall.first(shown, shown + _TICK) == shown

    def _begins(self, stretch: Stretch) -> datetime.datetime:
        """From when on the clock shows what it has not shown before, if that counts."""
        offset = stretch.offset if self.evenly else max(stretch.offset, stretch.before)
        return stretch.start.replace(tzinfo=None) + offset

    def _catches_up(self, stretch: Stretch) -> bool:
        """Whether it fires as the clock is changed, for what the clock leaves out."""
        if self.evenly or stretch.before >= stretch.offset:
            return False
        start = stretch.start.replace(tzinfo=None)
        return self.wall.first(start + stretch.before, start + stretch.offset) is not None


def _values(field: _Field, text: str) -> set[int]:
    return set[int]().union(*(field.values(term) for term in text.split(",")))


def _canonical(text: str) -> list[str]:
    """The five fields, each as ``*``, ``*/n`` or a list of numbers."""
    if len(text) > LONGEST_TEXT:
        raise BadSchedule(f"longer than {LONGEST_TEXT} characters")
    if "TZ=" in text.upper():
        raise BadSchedule(f"{text!r} names a time zone; that goes into timeZone")
    parts = MACROS.get(text.strip().lower(), text).split()
    if parts and parts[0].startswith("@"):
        raise BadSchedule(f"{text!r} is not one of {', '.join(MACROS)}")
    if len(parts) != len(_FIELDS):
        raise BadSchedule(
            f"{text!r} has {len(parts)} fields, not five: minute, hour, day of the month, month, day of the week"
        )
    return [
        _plain(field, part, index) for index, (field, part) in enumerate(zip(_FIELDS, parts, strict=True))
    ]


def _plain(field: _Field, text: str, index: int) -> str:
    """What crons read differently is not left to be read."""
    terms = text.split(",")
    values = set[int]().union(*(field.values(term) for term in terms))
    if any(term in ("*", "?", "*/1", "?/1") for term in terms):
        return "*"
    if index < _TIME_OF_DAY:
        if len(values) == field.high - field.low + 1:
            return "*"
        if len(terms) == 1 and text[0] in "*?":
            return "*" + text[1:]
    return ",".join(str(value) for value in sorted(values))
