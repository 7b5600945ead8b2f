"""Durations as people write them: ISO 8601 (``PT30M``, days down to seconds) and Kubernetes' (``1h30m``).

Years, months, weeks and signs are refused: nobody knows how long a month is. Imports nothing heavy.
"""

from __future__ import annotations

import datetime
import re

_NUMBER = r"\d+(?:\.\d+)?"
_ISO = re.compile(
    rf"P(?:(?P<days>{_NUMBER})D)?(?:T(?:(?P<hours>{_NUMBER})H)?(?:(?P<minutes>{_NUMBER})M)?(?:(?P<seconds>{_NUMBER})S)?)?"
)
_KUBERNETES = re.compile(
    rf"(?:(?P<hours>{_NUMBER})h)?(?:(?P<minutes>{_NUMBER})m)?(?:(?P<seconds>{_NUMBER})s)?(?:(?P<milliseconds>{_NUMBER})ms)?"
)

PATTERN = (
    r"^(P(\d+(\.\d+)?D)?(T(\d+(\.\d+)?H)?(\d+(\.\d+)?M)?(\d+(\.\d+)?S)?)?"
    r"|(\d+(\.\d+)?h)?(\d+(\.\d+)?m)?(\d+(\.\d+)?s)?(\d+(\.\d+)?ms)?)$"
)
"""What may stand in a resource, for its schema."""


def parse_duration(text: str) -> datetime.timedelta:
    """Read a duration; raises ValueError, saying what is accepted, for anything else."""
    match = _ISO.fullmatch(text) if text.startswith("P") else _KUBERNETES.fullmatch(text)
    parts = {unit: float(number) for unit, number in match.groupdict().items() if number} if match else {}
    if not parts or text.endswith("T"):
        raise ValueError(f"{text!r} is no duration; write ISO 8601 (PT30M, P1DT12H) or 30m, 1h30m, 90s")
    try:
        return datetime.timedelta(**parts)
    except OverflowError:
        raise ValueError(f"{text!r} is longer than can be reckoned with") from None
