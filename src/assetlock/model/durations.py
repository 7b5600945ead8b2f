"""Durations as people write them: ISO 8601 (``PT30M``, days down to seconds) and Kubernetes' (``1h30m``).

Years, months, weeks and signs are refused: nobody knows how long a month is. Whatever is accepted is exact to
the microsecond, and short enough to be added to any date of this age; zero has no other digit than 0.
Nothing is imported that takes time to load, and nothing is rewritten: a duration is shown as it was written.
"""

from __future__ import annotations

import datetime
import functools
import re

MAX_LENGTH = 64
ACCEPTED = "a duration is written like 30m, 48h, PT30M or P2D, without years, months, weeks or a sign"


def _part(digits: int, unit: str) -> str:
    fraction = "" if unit == "ms" else "([.][0-9]{1,6})?"
    return f"([0-9]{{1,{digits}}}{fraction}{unit})?"


_CLOCK = "".join(_part(*part) for part in ((7, "H"), (8, "M"), (9, "S")))
_KUBERNETES = "".join(_part(*part) for part in ((7, "h"), (8, "m"), (9, "s"), (9, "ms")))

PATTERN = f"^(P{_part(5, 'D')}(T{_CLOCK})?|{_KUBERNETES})$"
"""The units and their order. Means the same to Python and to RE2, the API server's."""

ENDING = "[0-9](ms|[A-Za-z])$"
"""What such a text has to end with, as all of its parts may be missing."""

_PATTERN, _ENDING = re.compile(PATTERN), re.compile(ENDING)
_PARTS = re.compile(r"([0-9]+)(?:[.]([0-9]+))?(ms|[DHMShms])")
_DAYS = re.compile(r"([0-9]{1,3})([dw])")
_SECOND = 1_000_000
_MICROSECONDS = {
    "D": 86_400 * _SECOND,
    "H": 3_600 * _SECOND,
    "h": 3_600 * _SECOND,
    "M": 60 * _SECOND,
    "m": 60 * _SECOND,
    "S": _SECOND,
    "s": _SECOND,
    "ms": 1_000,
}


@functools.lru_cache(maxsize=4096)
def parse_duration(text: str) -> datetime.timedelta:
    """Read a duration; raises ValueError, saying what is accepted, for anything else."""
    if len(text) > MAX_LENGTH or not (_PATTERN.fullmatch(text) and _ENDING.search(text)):
        shown = text if len(text) <= MAX_LENGTH else f"{text[:MAX_LENGTH]}…"
        raise ValueError(f'invalid duration "{shown}": {_meant(text) or ACCEPTED}')
    return datetime.timedelta(microseconds=sum(_microseconds(*part) for part in _PARTS.findall(text)))


def _meant(text: str) -> str | None:
    """What to write instead, where days or weeks were meant."""
    found = _DAYS.fullmatch(text)
    if found is None:
        return None
    days = int(found[1]) * (7 if found[2] == "w" else 1)
    return f"use {24 * days}h or P{days}D"


def shown(length: datetime.timedelta) -> str:
    """A length as people write it, in whole seconds: ``10m``, ``1h30m``, ``45s``."""
    minutes, seconds = divmod(int(length.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def _microseconds(whole: str, fraction: str, unit: str) -> int:
    millionths = int(whole) * _SECOND + int(fraction.ljust(6, "0"))
    return millionths * _MICROSECONDS[unit] // _SECOND
