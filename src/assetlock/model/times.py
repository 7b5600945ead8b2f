"""Times as Kubernetes writes them: RFC 3339 in UTC, whole seconds or exactly six digits of a second.

What is finer is cut off, never rounded, so that no time is shown before it has come.
"""

from __future__ import annotations

import datetime


def format_time(moment: datetime.datetime) -> str:
    """As ``metav1.Time``: whole seconds, what is below them cut off."""
    return f"{moment.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def format_micro_time(moment: datetime.datetime) -> str:
    """As ``metav1.MicroTime``: always six digits, as the API server refuses any other number of them."""
    return f"{moment.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
