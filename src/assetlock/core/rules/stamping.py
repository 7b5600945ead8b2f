"""How the fence goes up and comes down: stamps on the targets, and the holder on the Asset."""

from __future__ import annotations

from assetlock.core import names
from assetlock.core.acquisition import Acquisition
from assetlock.core.decision import (
    Body,
    ConfirmAsset,
    Confirmation,
    Decision,
    Event,
    PatchTarget,
)
from assetlock.core.fence.other_assets import shut_out_of
from assetlock.core.fence.stamp import Stamp, StampedHolder, unstampable
from assetlock.core.identity import Identity
from assetlock.core.messages import MOST_HOLDERS, is_printable, shortened
from assetlock.core.observation import ObservedTarget
from assetlock.core.rules.live_reads import (
    confirm_former_gone,
    confirm_readmission,
    confirm_recorded,
    confirm_slots,
)
from assetlock.core.situation import Situation
from assetlock.core.status import asset as asset_status
from assetlock.core.status import fenced_places, turnover


def list_places(situation: Situation) -> Decision | None:
    """Say on the Asset where its targets are, before one is stamped where none was when the holders were recorded."""
    asset = situation.observation.asset
    recorded = any(holder.recorded for holder in situation.holders)
    if asset is None or not recorded or not fenced_places.lacks_any(situation):
        return None
    status = asset_status.status_of(situation, asset.status.holders, situation.mark)
    return Decision(writes=(asset_status.write(situation, status),))


def stamp(situation: Situation) -> Decision | None:
    """Put the holders' stamps on every target that lacks them.

    A token above the Asset's mark is another leader's, who has recorded it already, or nobody's: the Asset, read
    live, shows which. So a lower token never goes over one that was given out.
    """
    holders, exempt = admitted(situation)
    asset = situation.observation.asset
    if not holders or asset is None:
        return None
    writes, confirm = [], set[Confirmation]()
    for target in _in_order(situation):
        if _shuts_out(situation, target):
            break
        stamp = Stamp(target.uid or "", holders, exempt)
        present = situation.stamp(target)
        if present == stamp or (present is None and unstampable(target)):
            continue
        forged = _forgery(situation, target)
        stamps = {**_planted(target), situation.stamp_key: str(stamp)}
        patch = _target_patch(target, stamps, fenced=True)
        writes.append(PatchTarget(target, patch, events=forged))
        confirm |= {
            *([ConfirmAsset(asset.metadata.resource_version)] if forged else ()),
            *confirm_readmission(situation, holders, present.holders if present else ()),
            *confirm_recorded(situation, target.resource_version),
        }
    return Decision(confirm=tuple(confirm), writes=tuple(writes), independent=True) if writes else None


def shuts_out(situation: Situation) -> bool:
    """Whether a target can't be stamped before somebody else, who has it through another asset, is done."""
    return any(_shuts_out(situation, target) for target in _in_order(situation))


def _in_order(situation: Situation) -> list[ObservedTarget]:
    """The targets to be stamped, in the same order for every asset: so no two wait for each other's."""
    there = (t for t in situation.observation.targets if t.uid and not t.problem and t.wanted)
    return sorted(there, key=lambda t: (t.resource, t.namespace or "", t.target.name or "", t.uid or ""))


def _shuts_out(situation: Situation, target: ObservedTarget) -> bool:
    usernames = {identity.username for holder in situation.holders for identity in _identities(holder)}
    return shut_out_of(target, situation.stamp_key, usernames) is not None


def _forgery(situation: Situation, target: ObservedTarget) -> tuple[Event, ...]:
    """What is told of a stamp with a token that was never given out; nothing if there is none."""
    asset, present = situation.observation.asset, situation.stamp(target)
    if asset is None or present is None or present.token <= situation.mark:
        return ()
    named = ", ".join(shortened(holder.identity.username) for holder in present.holders[:MOST_HOLDERS])
    note = (
        f"the stamp on {target.target.kind} {target.target.name} named {named} with token {present.token}, which was "
        f"never given out: it was put right"
    )
    return (Event.about(asset, "StampForged", note, warning=True),)


def admitted(situation: Situation) -> tuple[tuple[StampedHolder, ...], tuple[str, ...]]:
    """Who may write now, and who may only update: what stamps and guards say. Nobody while nobody is recorded."""
    asset = situation.observation.asset
    lines = [
        StampedHolder(holder.recorded.fencing_token, identity)
        for holder in situation.holders
        if holder.recorded is not None
        for identity in _identities(holder)
    ]
    if asset is None or not lines:
        return (), ()
    closed = any(line.identity.is_closing for line in lines)
    exempt = () if closed else tuple(filter(is_printable, asset.spec.exempt))
    return tuple(sorted(lines, key=lambda line: line.token)), exempt


def _identities(holder: Acquisition) -> list[Identity]:
    """Whom the fence lets write for a holder. One for maintenance is only told of, and its maintainers write."""
    lock, username = holder.lock, holder.claim.identity.username
    if lock is None or lock.spec.mode != "Maintenance":
        return [holder.claim.identity]
    return [Identity.closing(username, lock.spec.reason), *map(Identity.of, lock.spec.maintainers)]


def clear(situation: Situation) -> Decision | None:
    """With nobody holding: take the holders off the Asset, then the stamps off the targets.

    The Leases are looked for live first: one that was only not seen yet would be a holder left without its fence.
    """
    observation, asset = situation.observation, situation.observation.asset
    if situation.holders:
        return None
    if asset is not None and asset.status.holders:
        told = turnover.ended(situation)
        status = asset_status.status_of(situation, [], situation.token_in_use)
        slots = sorted({slot for holder in asset.status.holders for slot in holder.slots})
        confirm = (*confirm_slots(situation, slots), *confirm_former_gone(situation))
        return Decision(confirm=confirm, writes=(asset_status.write(situation, status, *told),))
    writes = [_unstamp(situation, target) for target in observation.targets if _is_stamped(situation, target)]
    version = asset.metadata.resource_version if asset else None
    confirm_free = (ConfirmAsset(version),)
    return Decision(confirm=confirm_free, writes=tuple(writes), independent=True) if writes else None


def unstamp_strays(situation: Situation) -> Decision | None:
    """Objects that the asset no longer names are not fenced by it."""
    strays = [t for t in situation.observation.targets if not t.wanted and _is_stamped(situation, t)]
    writes = tuple(_unstamp(situation, target) for target in strays)
    return Decision(writes=writes, independent=True) if strays else None


def _is_stamped(situation: Situation, target: ObservedTarget) -> bool:
    return target.uid is not None and situation.stamp_key in target.annotations


def _planted(target: ObservedTarget) -> dict[str, str | None]:
    """Stamps on an object without the label are not ours: with the label they would shut the holder out."""
    if target.labels.get(names.FENCED_LABEL) == "true":
        return {}
    return {key: None for key in target.annotations if key.endswith(names.STAMP_SUFFIX)}


def _unstamp(situation: Situation, target: ObservedTarget) -> PatchTarget:
    others = any(
        key.endswith(names.STAMP_SUFFIX) and key != situation.stamp_key for key in target.annotations
    )
    return PatchTarget(target, _target_patch(target, {situation.stamp_key: None}, fenced=others))


def _target_patch(target: ObservedTarget, annotations: dict[str, str | None], *, fenced: bool) -> Body:
    return {
        "metadata": {
            "uid": target.uid,
            "resourceVersion": target.resource_version,
            "labels": {names.FENCED_LABEL: "true" if fenced else None},
            "annotations": annotations,
        }
    }
