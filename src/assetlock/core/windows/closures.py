"""Whether an asset is closed by the maintenance windows that concern it, by which of them, and until when.

An asset is open while no ``Block`` window is active and, if it has ``Allow`` windows, one of those is. Windows
that are suspended, being deleted or make no sense close nothing.
"""

from __future__ import annotations

import dataclasses
import datetime
import heapq
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence

from assetlock.core.selection import selects
from assetlock.core.windows.calendar import BadWindow, Calendar, calendar_of
from assetlock.model.asset import Asset
from assetlock.model.durations import parse_duration
from assetlock.model.subject import Subject
from assetlock.model.window import MaintenanceWindow

MOST_CHANGES = 100
"""So many moments at which windows open or close are looked at to find when the asset does."""

WhenHeld = str
_BY_STRENGTH = ("Skip", "Wait", "Revoke")


@dataclasses.dataclass(frozen=True, slots=True)
class _Window:
    window: MaintenanceWindow
    calendar: Calendar

    @property
    def blocks(self) -> bool:
        return self.window.spec.kind == "Block"

    def active(self, moment: datetime.datetime) -> bool:
        return self.calendar.current(moment) is not None

    def closed_since(self, moment: datetime.datetime) -> datetime.datetime | None:
        """Since when it closes what it does at this moment; ``None`` for longer than is known."""
        period = self.calendar.current(moment) if self.blocks else self.calendar.last(moment)
        if period is None:
            return None
        return period.start if self.blocks else period.end

    def edges(self, moment: datetime.datetime, n: int) -> Iterator[tuple[datetime.datetime, int, bool]]:
        """When it starts and ends later than this moment, its number, and whether it is active from then on."""
        for period in self.calendar.periods(moment):
            if period.start is not None and period.start > moment:
                yield period.start, n, True
            if period.end is not None:
                yield period.end, n, False


@dataclasses.dataclass(frozen=True, slots=True)
class Closure:
    """That an asset is closed: the windows that say so, the one that speaks for all of them first."""

    windows: tuple[MaintenanceWindow, ...]
    since: datetime.datetime | None
    until: datetime.datetime | None

    @property
    def when_held(self) -> WhenHeld:
        """What happens to who holds the asset: the strictest of the windows decides."""
        return max((window.spec.when_held for window in self.windows), key=_BY_STRENGTH.index)

    @property
    def lead_time(self) -> datetime.timedelta:
        """How long before it no lock is granted that would outlive its start."""
        return max(parse_duration(window.spec.lead_time) for window in self.windows)

    @property
    def maintainers(self) -> list[Subject]:
        """Who may write meanwhile: whom every one of the windows names."""
        first, *others = (window.spec.maintainers for window in self.windows)
        return [subject for subject in first if all(subject in named for named in others)]

    @property
    def reason(self) -> str | None:
        """What for, in the words of all the windows."""
        reasons = [window.spec.reason for window in self.windows if window.spec.reason]
        return "; ".join(dict.fromkeys(reasons))[:1024] or None


class Closures:
    """When an asset is closed. Pure: it knows the windows and is asked about moments."""

    def __init__(self, asset: Asset | None, windows: Iterable[MaintenanceWindow]) -> None:
        self._windows = list(_in_force(asset, windows)) if asset else []

    def at(self, moment: datetime.datetime) -> Closure | None:
        """What closes the asset at a moment; ``None`` while it is open."""
        closing = self._closing(moment)
        if not closing:
            return None
        closing.sort(
            key=lambda w: (not w.blocks, w.closed_since(moment) or _LONG_AGO, w.window.metadata.name)
        )
        return Closure(
            tuple(found.window for found in closing),
            since=closing[0].closed_since(moment),
            until=self._next(moment, closed=False),
        )

    def next(self, moment: datetime.datetime) -> datetime.datetime | None:
        """When the asset, which is open, will be closed."""
        return self._next(moment, closed=True)

    def next_closure(self, moment: datetime.datetime) -> Closure | None:
        """What will close the asset, which is open, next."""
        closes = self.next(moment)
        return self.at(closes) if closes is not None else None

    def next_change(self, moment: datetime.datetime) -> datetime.datetime | None:
        """When any of the windows opens or closes."""
        return next((change for change, _ in self._changes(moment)), None)

    def _closing(self, moment: datetime.datetime) -> list[_Window]:
        return self._closing_of([window for window in self._windows if window.active(moment)])

    def _closing_of(self, active: Collection[_Window]) -> list[_Window]:
        """Those that close the asset while these are active."""
        blocking = [window for window in active if window.blocks]
        allowing = [window for window in self._windows if not window.blocks]
        return blocking if any(window in active for window in allowing) else blocking + allowing

    def _next(self, moment: datetime.datetime, *, closed: bool) -> datetime.datetime | None:
        return next((change for change, closing in self._changes(moment) if bool(closing) == closed), None)

    def _changes(self, moment: datetime.datetime) -> Iterator[tuple[datetime.datetime, list[_Window]]]:
        """When windows open or close later than this moment, and which of them close the asset from then on."""
        active = [window.active(moment) for window in self._windows]
        edges = heapq.merge(*(window.edges(moment, n) for n, window in enumerate(self._windows)))
        moments = itertools.groupby(edges, key=lambda edge: edge[0])
        for when, several in itertools.islice(moments, MOST_CHANGES):
            for _, index, begins in several:
                active[index] = begins
            yield when, self._closing_of([w for w, now in zip(self._windows, active, strict=True) if now])


def concerns(window: MaintenanceWindow, asset: Asset) -> bool:
    """Whether a window of the same namespace is about this asset."""
    spec = window.spec
    selected = spec.asset_selector is not None and selects(spec.asset_selector, asset.metadata.labels)
    return selected or asset.metadata.name in spec.asset_names


def concerned(window: MaintenanceWindow, assets: Iterable[Asset]) -> Sequence[Asset]:
    """The assets that a window is about, by name."""
    return sorted((a for a in assets if concerns(window, a)), key=lambda asset: asset.metadata.name)


def _in_force(asset: Asset, windows: Iterable[MaintenanceWindow]) -> Iterable[_Window]:
    for window in windows:
        if (
            window.spec.suspend
            or window.metadata.deletion_timestamp is not None
            or not concerns(window, asset)
        ):
            continue
        try:
            yield _Window(window, calendar_of(window.spec))
        except BadWindow:
            continue


_LONG_AGO = datetime.datetime.min.replace(tzinfo=datetime.UTC)
