"""What a window says, found out the long way: every minute of a year is looked at on the wall clock.

Shares no code with what it judges: fields are read by a few lines of its own, and the changes of the clock are found
by comparing each minute with the one before.
"""

from __future__ import annotations

import bisect
import datetime
import functools
import zoneinfo

MINUTE = datetime.timedelta(minutes=1)
_NAMES = {
    3: "- JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(),  # noqa: SIM905
    4: "SUN MON TUE WED THU FRI SAT".split(),  # noqa: SIM905
}
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


class Almanac:
    """The instants at which a schedule fires between two others, by brute force."""

    def __init__(self, schedule: str, zone: str, since: datetime.datetime, until: datetime.datetime) -> None:
        self._fields = schedule.upper().split()
        self._allowed = [_allowed(index, field) for index, field in enumerate(self._fields)]
        self._evenly = any(field[0] in "*?" for field in self._fields[:2])
        self.fired = self._all(_wall_clock(zone, since, until))

    def active(self, duration: datetime.timedelta, moment: datetime.datetime) -> bool:
        """Whether one that fired by ``moment`` has not lasted its time yet."""
        index = bisect.bisect_right(self.fired, moment)
        return index > 0 and moment < self.fired[index - 1] + duration

    def _all(self, clock: list[tuple[datetime.datetime, datetime.datetime]]) -> list[datetime.datetime]:
        fired: list[datetime.datetime] = []
        before = clock[0][1] - MINUTE
        for moment, shown in clock:
            if self._evenly or shown == before + MINUTE:
                due = self._fits(shown)
            else:
                due = any(self._fits(missed) for missed in _minutes(before, shown))
            if due:
                fired.append(moment)
            before = shown if self._evenly else max(before, shown)
        return fired

    def _fits(self, shown: datetime.datetime) -> bool:
        minute, hour, day, month, weekday = self._allowed
        if shown.minute not in minute or shown.hour not in hour or shown.month not in month:
            return False
        by_day, by_weekday = shown.day in day, (shown.weekday() + 1) % 7 in weekday
        if self._fields[2] in ("*", "?") or self._fields[4] in ("*", "?"):
            return by_day and by_weekday
        return by_day or by_weekday


@functools.lru_cache(maxsize=1)
def _wall_clock(
    zone: str, since: datetime.datetime, until: datetime.datetime
) -> list[tuple[datetime.datetime, datetime.datetime]]:
    """Every minute, and what a clock on the wall shows then."""
    place = zoneinfo.ZoneInfo(zone)
    minutes = (since + MINUTE * n for n in range((until - since) // MINUTE))
    return [(moment, moment.astimezone(place).replace(tzinfo=None)) for moment in minutes]


def _minutes(after: datetime.datetime, until: datetime.datetime) -> list[datetime.datetime]:
    """The minutes that the clock has come to show, those it jumped over among them; none when it was set back."""
    return [after + MINUTE * n for n in range(1, (until - after) // MINUTE + 1)]


def _allowed(index: int, field: str) -> set[int]:
    low, high = _RANGES[index]
    allowed = set()
    for term in field.split(","):
        span, _, step = term.partition("/")
        first, _, last = span.partition("-")
        begin = low if span in "*?" else _number(index, first)
        end = high if span in "*?" or (step and not last) else _number(index, last or first)
        allowed |= {value for value in range(begin, end + 1) if (value - begin) % int(step or 1) == 0}
    return allowed


def _number(index: int, text: str) -> int:
    return _NAMES[index].index(text) if text.isalpha() else int(text)
