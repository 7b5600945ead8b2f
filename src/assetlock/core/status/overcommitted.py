"""Leases made by hand that hold nothing, as the asset has no room for them: who made them is told so on the Asset."""

from __future__ import annotations

from assetlock.core.acquisition import Acquisition
from assetlock.core.decision import Event
from assetlock.core.messages import shortened
from assetlock.core.situation import Situation
from assetlock.core.status import reporting
from assetlock.model.asset import Asset, AssetStatus
from assetlock.model.conditions import find_condition

OVERCOMMITTED = "Overcommitted"
"""The Asset's condition that there are such Leases."""

NAMED = 3


def condition(situation: Situation, asset: Asset) -> dict[str, reporting.Told]:
    """What is to be said of them; nothing while there are none and never were any."""
    if not situation.overcommitted:
        return reporting.gone(asset, OVERCOMMITTED, "AllHold")
    told = "; ".join(_why(situation, acquisition) for acquisition in situation.overcommitted[:NAMED])
    more = (
        f"; and {len(situation.overcommitted) - NAMED} more" if len(situation.overcommitted) > NAMED else ""
    )
    return {OVERCOMMITTED: ("True", "LeaseHoldsNothing", f"{told}{more}")}


def news(asset: Asset, status: AssetStatus) -> tuple[Event, ...]:
    """The Event that goes with a status that says of other Leases than before that they hold nothing."""
    said, now = (find_condition(each.conditions, OVERCOMMITTED) for each in (asset.status, status))
    if now is None or now.status != "True" or (said is not None and said.message == now.message):
        return ()
    return (Event.about(asset, now.reason, now.message, warning=True),)


def _why(situation: Situation, acquisition: Acquisition) -> str:
    lease, capacity = acquisition.primary, situation.observation.capacity
    whose = f"Lease {lease.name} of {shortened(acquisition.claim.identity.username)} holds nothing"
    if lease.slot >= capacity:
        return (
            f"{whose}: the asset's capacity is {capacity}, so there is no slot {lease.slot}; delete the Lease"
        )
    return f"{whose} before others have left: there is no room for one more"
