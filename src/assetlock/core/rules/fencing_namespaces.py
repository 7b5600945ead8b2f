"""How namespaces are guarded: labelled while assets need it, and told which subresources are closed for whom."""

from __future__ import annotations

from assetlock.core import names
from assetlock.core.decision import Body, ConfirmAsset, Confirmation, Decision, Event, PatchNamespace
from assetlock.core.fence import namespace_fence
from assetlock.core.fence.namespace_fence import GuardedTarget, NamespaceFence
from assetlock.core.observation import ObservedNamespace, ObservedTarget
from assetlock.core.rules import stamping
from assetlock.core.rules.live_reads import confirm_readmission, confirm_recorded
from assetlock.core.situation import Situation


def put_up(situation: Situation) -> Decision | None:
    """Label the namespaces of the asset and its targets, and close subresources there before a target is stamped.

    The label stays for as long as there is an asset, so a lock need not write it.
    """
    if situation.observation.asset is None:
        return None
    writes, confirm = [], set[Confirmation]()
    for space in situation.observation.namespaces:
        write = None if space.problem else _missing(situation, space)
        if write is None:
            continue
        writes.append(write)
        wanted, present = _wanted(situation, space), situation.guard(space)
        if wanted is not None and present is not None and present.token > situation.mark:
            confirm.add(ConfirmAsset(situation.observation.asset.metadata.resource_version))
        if wanted is not None:
            confirm |= {
                *confirm_readmission(situation, wanted.holders, present.holders if present else ()),
                *confirm_recorded(situation, space.resource_version),
            }
    return Decision(confirm=tuple(confirm), writes=tuple(writes), independent=True) if writes else None


def take_down(situation: Situation) -> Decision | None:
    """Take the guard off where the asset has nothing to close any more; the stamps have gone before.

    With nobody holding, the Asset is read live first, as for the stamps.
    """
    asset = situation.observation.asset
    version = asset.metadata.resource_version if asset else None
    writes = tuple(
        PatchNamespace(space, _patch(space, labels={}, annotations={situation.namespace_fence_key: None}))
        for space in situation.observation.namespaces
        if situation.namespace_fence_key in space.annotations and _wanted(situation, space) is None
    )
    confirm = () if situation.holders else (ConfirmAsset(version),)
    return Decision(confirm=confirm, writes=writes, independent=True) if writes else None


def _missing(situation: Situation, space: ObservedNamespace) -> PatchNamespace | None:
    labels: dict[str, str | None] = {}
    annotations: dict[str, str | None] = {}
    if space.labels.get(names.GUARDED_LABEL) != "true":
        labels[names.GUARDED_LABEL] = "true"
    annotations |= dict.fromkeys(namespace_fence.planted(space))
    wanted, present = _wanted(situation, space), situation.guard(space)
    if wanted is not None and present != wanted:
        annotations[situation.namespace_fence_key] = str(wanted)
    if not labels and not annotations:
        return None
    events = _removed(situation, space) if labels else ()
    return PatchNamespace(space, _patch(space, labels=labels, annotations=annotations), events)


def _removed(situation: Situation, space: ObservedNamespace) -> tuple[Event, ...]:
    """That somebody has taken the label off while the asset is locked: without it, less is refused."""
    asset = situation.observation.asset
    was_there = (
        space.name == situation.observation.namespace or situation.namespace_fence_key in space.annotations
    )
    if asset is None or not was_there or not any(holder.announced for holder in situation.holders):
        return ()
    note = f"somebody removed the label {names.GUARDED_LABEL} from namespace {space.name}; it is put back"
    return (Event.about(asset, "GuardRestored", note, warning=True),)


def _wanted(situation: Situation, space: ObservedNamespace) -> NamespaceFence | None:
    """The guard that belongs on the namespace now; ``None`` for none.

    A target that is made anew under its name is guarded already; what can't be looked at for a while stays closed.
    For targets without subresources in the asset's own namespace none is needed: what keeps that from being deleted
    is the Asset in it.
    """
    holders, exempt = stamping.admitted(situation)
    there = [t for t in situation.observation.targets if t.wanted and t.namespace == space.name]
    lines = {_line(situation, target) for target in there if namespace_fence.needs_lines(target)}
    if (present := situation.guard(space)) and any(t.problem for t in situation.observation.targets):
        lines |= set(present.targets)
    is_foreign = space.name != situation.observation.namespace and any(target.uid for target in there)
    if not holders or not (lines or is_foreign):
        return None
    return NamespaceFence(tuple(sorted(lines, key=str)), holders, exempt)


def _line(situation: Situation, target: ObservedTarget) -> GuardedTarget:
    asset = situation.observation.asset
    also = set(asset.spec.guarded_subresources) if asset else set()
    closed = tuple(sorted(also & target.subresources))
    return GuardedTarget(target.resource, target.target.name or "", closed)


def _patch(
    space: ObservedNamespace, *, labels: dict[str, str | None], annotations: dict[str, str | None]
) -> Body:
    metadata = {"uid": space.uid, "resourceVersion": space.resource_version}
    fields = {"labels": labels, "annotations": annotations}
    return {"metadata": {**metadata, **{key: value for key, value in fields.items() if value}}}
