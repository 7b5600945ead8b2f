"""Whether an asset's targets are protected, in words: the condition Fenced, of the Asset and of the locks on it."""

from __future__ import annotations

from collections.abc import Sequence

from assetlock.core.selection import described
from assetlock.core.situation import Situation
from assetlock.core.status import reporting
from assetlock.model.asset import Target

FENCED = "Fenced"


def of_asset(situation: Situation) -> reporting.Told:
    """What the condition says of an asset, with how many targets there are."""
    present = sum(1 for t in situation.observation.targets if t.wanted and t.uid)
    counted = f"{'1 target' if present == 1 else f'{present} targets'} fenced when locked"
    lack = _lack(situation)
    if lack is None:
        return "True", "Fenced", counted
    reason, message = lack
    return "False", reason, f"{message}; {counted}" if present and reason != "NotFenceable" else message


def of_lock(situations: Sequence[Situation]) -> reporting.Told:
    """What it says of a lock on these assets: without figures, which would change while it is held."""
    for situation in situations:
        if (lack := _lack(situation)) is not None:
            reason, message = lack
            where = f"asset {situation.observation.name}: " if len(situations) > 1 else ""
            return "False", reason, where + message
    return "True", "Fenced", "all targets are fenced"


def _lack(situation: Situation) -> tuple[str, str] | None:
    """Reason and message why not everything that the asset names is protected by a lock on it."""
    if situation.unfenceable:
        return "NotFenceable", situation.unfenceable
    wanted = [target for target in situation.observation.targets if target.wanted]
    if not wanted:
        return "NoTargets", "the asset names no targets, so nothing in Kubernetes is fenced"
    return next((_missing(observed.target) for observed in wanted if not observed.uid), None)


def _missing(target: Target) -> tuple[str, str]:
    if target.selector is not None:
        what = f"no {target.kind} is selected by {described(target.selector)}"
        return "NothingSelected", f"{what}; what matches later is fenced then"
    return "TargetNotFound", f"{target.kind} {target.name} does not exist; it is fenced as soon as it does"
