"""What is shown of a maintenance window: when it is active, and whether its assets are as it says.

Pure: made from the window, the assets it is about and the locks that windows hold on them.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence

from assetlock.core.decision import Body
from assetlock.core.status import reporting
from assetlock.core.windows.calendar import (
    BadWindow,
    Calendar,
    Period,
    calendar_of,
    never_ends,
    never_starts,
)
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock, LockState
from assetlock.model.times import format_time
from assetlock.model.window import MaintenanceWindow, MaintenanceWindowStatus

NAMED = 3
"""So many assets are named that are not as the window says."""


@dataclasses.dataclass(frozen=True, slots=True)
class WindowView:
    """A window, the assets that it is about, and the window locks on them."""

    now: datetime.datetime
    window: MaintenanceWindow
    assets: Sequence[Asset]
    locks: Sequence[AssetLock]


def body(view: WindowView) -> Body | None:
    """The window with its status as it ought to be; ``None`` if it is."""
    window = view.window
    calendar, ready = _calendar(view)
    status = _times(view, calendar)
    told = {"Ready": ready, "Enforced": _enforced(view, calendar)}
    if ready[1] == "InvalidTimes":
        told[reporting.STALLED] = ("True", ready[1], ready[2])
    else:
        told |= reporting.gone(window, reporting.STALLED, ready[1])
    conditions = reporting.conditions(view.now, window, told)
    status = status.model_copy(
        update={"conditions": conditions, "observed_generation": window.metadata.generation}
    )
    wanted = reporting.body(window, status, window.metadata.namespace or "")
    return wanted if wanted["status"] != reporting.written(window.status) else None


def wake_at(view: WindowView) -> datetime.datetime | None:
    """When time alone changes the status."""
    calendar, _ = _calendar(view)
    if calendar is None:
        return None
    period = calendar.current(view.now)
    following = period or calendar.next(view.now)
    if following is None:
        return None
    return following.end if period else following.start


def _calendar(view: WindowView) -> tuple[Calendar | None, reporting.Told]:
    """When the window is active, unless it never is now, and what is said of that."""
    spec = view.window.spec
    try:
        calendar = calendar_of(spec)
    except BadWindow as error:
        return None, ("False", "InvalidTimes", str(error))
    if view.window.metadata.deletion_timestamp is not None:
        return None, ("False", "Deleting", "being deleted: no maintenance")
    if spec.suspend:
        return None, ("True", "Suspended", "suspended: no maintenance")
    missing = sorted(set(spec.asset_names) - {asset.metadata.name for asset in view.assets})
    if missing:
        return calendar, ("False", "AssetNotFound", f"there is no asset {_listed(missing)} in this namespace")
    if not view.assets:
        return calendar, ("False", "NoAssets", "assetSelector selects no asset in this namespace")
    if (over := never_starts(spec, view.now)) is not None:
        return calendar, ("True", "Over", over)
    if (endless := never_ends(spec, view.now)) is not None:
        return calendar, ("True", "NeverCloses", endless)
    return calendar, ("True", "Scheduled", f"applies to {_counted(len(view.assets))}")


def _times(view: WindowView, calendar: Calendar | None) -> MaintenanceWindowStatus:
    if calendar is None:
        return MaintenanceWindowStatus(active=False)
    current, following = calendar.current(view.now), calendar.next(view.now)
    last = calendar.last(view.now)
    if last is not None and not _after_creation(view.window, last):
        last = None
    return MaintenanceWindowStatus(
        active=current is not None,
        next_start=following.start if following else None,
        next_end=current.end if current else following.end if following else None,
        last_start=current.start if current else last.start if last else None,
        last_end=last.end if last else None,
    )


def _after_creation(window: MaintenanceWindow, period: Period) -> bool:
    created = window.metadata.creation_timestamp
    return created is None or period.end is None or period.end > created


def _enforced(view: WindowView, calendar: Calendar | None) -> reporting.Told:
    """Whether the assets are closed and open as the window says, as far as it is its turn to say so."""
    if calendar is None:
        return "False", "Inactive", "no maintenance"
    active = calendar.current(view.now) is not None
    if active == (view.window.spec.kind == "Allow"):
        return "True", "Open", "no maintenance now"
    problems = [problem for asset in view.assets if (problem := _problem(view, asset)) is not None]
    if not problems:
        return "True", "Closed", f"{_counted(len(view.assets))} under maintenance"
    named = "; ".join(message for _, message in problems[:NAMED])
    more = f"; and {len(problems) - NAMED} more" if len(problems) > NAMED else ""
    return "False", problems[0][0], named + more


def _problem(view: WindowView, asset: Asset) -> tuple[str, str] | None:
    """Why an asset is not closed; reason and message."""
    name = asset.metadata.name
    locks = [lock for lock in view.locks if lock.spec.asset_name == name]
    if asset.status.lock_state == "Maintenance" or any(k.status.state is LockState.HELD for k in locks):
        return None
    told = next((c.message for k in locks for c in k.status.conditions if c.type == "Settled"), "")
    if any(k.status.state is LockState.FAILED for k in locks):
        skipped = view.window.spec.when_held == "Skip"
        return ("Skipped" if skipped else "Failed"), f"{name} is left out: {told or 'its lock failed'}"
    until = next((h.expire_time for h in asset.status.holders if h.expire_time), None)
    holder = asset.status.holders[0].identity if asset.status.holders else ""
    if holder:
        ends = f" until {format_time(until)}" if until else ""
        return "Waiting", f"{name} is still held by {holder}{ends}"
    return "Closing", f"maintenance of {name} is about to begin"


def _listed(several: Sequence[str]) -> str:
    more = f" and {len(several) - NAMED} more" if len(several) > NAMED else ""
    return ", ".join(several[:NAMED]) + more


def _counted(count: int) -> str:
    return "one asset" if count == 1 else f"{count} assets"
