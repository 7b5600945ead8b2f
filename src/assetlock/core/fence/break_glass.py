"""Broken glass: writes that went through a lock by the group for emergencies are shown on the Asset for an hour."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from assetlock.model.asset import BrokenGlass

SHOWN_FOR = datetime.timedelta(hours=1)
MOST_SHOWN = 10


def with_another(known: Sequence[BrokenGlass], another: BrokenGlass) -> list[BrokenGlass]:
    """The latest first. The same write again replaces the former; beyond ten the oldest are let go."""
    others = [entry for entry in known if not _same(entry, another)]
    return [another, *others][:MOST_SHOWN]


def shown(known: Sequence[BrokenGlass], now: datetime.datetime) -> list[BrokenGlass]:
    """Those whose hour is not over."""
    return [entry for entry in known if entry.time + SHOWN_FOR > now]


def next_deadline(known: Sequence[BrokenGlass]) -> datetime.datetime | None:
    """When the hour of the first of them is over."""
    return min((entry.time + SHOWN_FOR for entry in known), default=None)


def _same(one: BrokenGlass, other: BrokenGlass) -> bool:
    return one.model_copy(update={"time": other.time}) == other
