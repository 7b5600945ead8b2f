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
from collections.abc import Iterator

import cronsim

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

_LONGEST_JUMP = datetime.timedelta(hours=25)
"""No clock has ever been changed by more: Samoa once left out a whole day."""

_BETWEEN_CHANGES = datetime.timedelta(days=28)
"""No clock is changed twice within this time."""

_SECOND = datetime.timedelta(seconds=1)
_SOME_DAY = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


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


@dataclasses.dataclass(frozen=True, slots=True)
class Cron:
    """A schedule that has been read, in words that mean the same to every cron, and the zone of its clock."""

    expression: str
    zone: datetime.tzinfo

    @classmethod
    def parse(cls, text: str, zone: datetime.tzinfo) -> Cron:
        """Read a schedule; raises BadSchedule."""
        expression = _canonical(text)
        cron = cls(expression, zone)
        try:
            next(cronsim.CronSim(expression, _SOME_DAY))
        except (cronsim.CronSimError, StopIteration):
            raise BadSchedule(f"{text!r} never comes: no such day is in the calendar") from None
        return cron

    def after(self, moment: datetime.datetime) -> Iterator[datetime.datetime]:
        """Every instant later than ``moment`` at which it fires, in order, in UTC."""
        last = moment
        for instant in self._at_fixed_times(moment) if self._is_fixed else self._evenly(moment):
            if instant > last:
                yield instant
                last = instant

    @property
    def _is_fixed(self) -> bool:
        """Whether it has times of day, so that it does not go on evenly when the clocks change."""
        return not any(field.startswith("*") for field in self.expression.split()[:_TIME_OF_DAY])

    def _at_fixed_times(self, moment: datetime.datetime) -> Iterator[datetime.datetime]:
        """Cronsim does what Debian's cron does. It looks at the wall only, so one begins before any change."""
        since = moment.astimezone(datetime.UTC) - _LONGEST_JUMP
        for fired in cronsim.CronSim(self.expression, since.astimezone(self.zone)):
            yield fired.astimezone(datetime.UTC)

    def _evenly(self, moment: datetime.datetime) -> Iterator[datetime.datetime]:
        """Whenever the wall clock fits, from one change of the clock to the next.

        Between them it is as good as UTC. Cronsim loses times where a clock changes by half an hour.
        """
        since = moment.astimezone(datetime.UTC).replace(microsecond=0)
        while True:
            offset = self._offset(since)
            change = None
            for shown in cronsim.CronSim(self.expression, (since + offset).replace(tzinfo=None)):
                instant = shown.replace(tzinfo=datetime.UTC) - offset
                change = self._change(since, instant)
                if change is not None:
                    break
                yield instant
                since = instant
            if change is None:
                return
            yield from self._at_once(change)
            since = change

    def _at_once(self, change: datetime.datetime) -> Iterator[datetime.datetime]:
        """The moment at which the clock is changed, if what it shows then fits."""
        shown = (change + self._offset(change)).replace(tzinfo=None)
        if next(cronsim.CronSim(self.expression, shown - _SECOND), None) == shown:
            yield change

    def _change(self, since: datetime.datetime, until: datetime.datetime) -> datetime.datetime | None:
        """When the clock is changed first, later than ``since`` and not after ``until``."""
        before = self._offset(since)
        while since < until:
            probe = min(since + _BETWEEN_CHANGES, until)
            if self._offset(probe) != before:
                while probe - since > _SECOND:
                    middle = since + (probe - since) // (2 * _SECOND) * _SECOND
                    since, probe = (middle, probe) if self._offset(middle) == before else (since, middle)
                return probe
            since = probe
        return None

    def _offset(self, moment: datetime.datetime) -> datetime.timedelta:
        return moment.astimezone(self.zone).utcoffset() or datetime.timedelta()


def _canonical(text: str) -> str:
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
    return " ".join(
        _plain(field, part, index) for index, (field, part) in enumerate(zip(_FIELDS, parts, strict=True))
    )


def _plain(field: _Field, text: str, index: int) -> str:
    """The field as ``*``, ``*/n`` or a list of numbers: what crons read differently is not left to be read."""
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
