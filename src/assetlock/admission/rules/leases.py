"""Decides Leases that are locks: owner, acquisition and times are stamped here, whatever the client wrote.

The only clock that counts is ours. Somebody else's Lease is never taken by an update, not even an expired one:
the operator frees it within a second, and until then the policy would refuse.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator
from typing import Any

from assetlock.admission import facts, verdict
from assetlock.admission.facts import LeaseFacts, lease_facts
from assetlock.admission.review import Review, annotations_of, labels_of, mapping, metadata_of
from assetlock.admission.rules import changes
from assetlock.admission.verdict import Admitted, PatchOperation, Refused, Verdict
from assetlock.core import messages, names
from assetlock.core.identity import Identity
from assetlock.model.times import format_micro_time

LONGEST_SECONDS = 86400
COLLECTORS = frozenset(
    {
        "system:kube-controller-manager",
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:serviceaccount:kube-system:namespace-controller",
    }
)
_OURS = (
    names.OWNER_ANNOTATION,
    names.ACQUISITION_ANNOTATION,
    names.LOCK_ANNOTATION,
    names.POD_ANNOTATION,
    names.TOKEN_ANNOTATION,
    names.WITHHELD_ANNOTATION,
)
_OF_ONE_ACQUISITION = (*_OURS, names.REVOKED_ANNOTATION)


@dataclasses.dataclass(frozen=True, slots=True)
class Terms:
    """What the decision needs besides the request.

    ``may_unlock``: the verb ``unlock`` on the asset. ``capacity``: that of the asset; unknown if it is not known.
    """

    now: datetime.datetime
    default_ttl: datetime.timedelta
    capacity: int | None = None
    skew: datetime.timedelta = datetime.timedelta(seconds=1)
    may_unlock: bool = False


def asset_of(review: Review) -> str:
    """The asset that the Lease is the lock of."""
    return labels_of(review.old or review.new).get(names.ASSET_LABEL, "")


def owns(review: Review) -> bool:
    """Whether the Lease as it stands is the requester's to renew, hand over and delete."""
    before = lease_facts(review.old)
    return not before.holder or (before.lock is None and review.requester.is_one_with(before.owner))


def needs_unlock(review: Review) -> bool:
    """Whether the write is admitted only to those who may end others' locks."""
    if review.operation == "CREATE" or owns(review) or changes.none(review):
        return False
    return not changes.finishes_deletion(review) and review.requester.username not in COLLECTORS


def decide(review: Review, terms: Terms) -> Verdict:
    """Refuse what is somebody else's; stamp the rest."""
    if needs_unlock(review) and not terms.may_unlock:
        return _held(review, terms)
    if review.operation == "DELETE" or changes.none(review) or not _is_lock(review):
        return Admitted()
    before, after = lease_facts(review.old), lease_facts(review.new)
    if not after.holder:
        return _freed(review)
    if review.operation == "CREATE" and (lock := _copied_from(review)) is not None:
        return _emptied(review, lock)
    seconds = after.seconds if after.seconds is not None else before.seconds if before.holder else None
    if seconds is None:
        seconds = max(1, int(terms.default_ttl.total_seconds()))
    if not 1 <= seconds <= LONGEST_SECONDS:
        return verdict.invalid(
            "spec.leaseDurationSeconds",
            f"{seconds} is not between 1 and {LONGEST_SECONDS} (a day); a lock lasts longer by being renewed",
        )
    if after.holder != before.holder:
        if (unbound := _unbound(review)) is not None:
            return unbound
        if (beyond := _beyond(review, terms)) is not None:
            return beyond
        return _taken(review, before, seconds, terms)
    return _renewed(review, before, seconds, terms)


def _is_lock(review: Review) -> bool:
    """Whether the label is there before and after; the policy refuses to have it come or go."""
    labels = labels_of(review.new)
    return names.ASSET_LABEL in labels and (
        review.operation == "CREATE"
        or labels_of(review.old).get(names.ASSET_LABEL) == labels[names.ASSET_LABEL]
    )


def _held(review: Review, terms: Terms) -> Refused:
    before, asset = lease_facts(review.old), asset_of(review)
    if before.lock is not None:
        return verdict.locked(messages.lease_of_lock(review.name, before.lock, asset=asset))
    expires = before.expires(terms.default_ttl)
    if expires is not None and expires + terms.skew < terms.now:
        return verdict.locked(messages.lease_expired(review.name, expires), retry_after=1)
    told = before.told(terms.default_ttl)
    return verdict.locked(
        messages.lease_held(review.name, before.holder, told, asset=asset),
        causes=(str(told),),
        retry_after=facts.seconds_until([told], terms.now, longest=60),
    )


def _beyond(review: Review, terms: Terms) -> Refused | None:
    """The refusal of a slot that the asset does not have."""
    asset = asset_of(review)
    slot = names.slot_of(asset, review.name) or 0
    if terms.capacity is None or slot < terms.capacity:
        return None
    last = names.lease_name(asset, terms.capacity - 1)
    slots = f"the last one is {last}" if terms.capacity > 1 else f"the only one is {last}"
    return verdict.invalid(
        "metadata.name", f"asset {asset} has no slot {slot}: its capacity is {terms.capacity}, {slots}"
    )


def _unbound(review: Review) -> Refused | None:
    """The refusal of a Lease for a credential that can't be told from others."""
    bind_to = annotations_of(review.new).get(names.BIND_TO_ANNOTATION)
    if bind_to != "Credential" or review.requester.credential_id is not None:
        return None
    return verdict.invalid(
        f"metadata.annotations[{names.BIND_TO_ANNOTATION}]",
        f"the credential of {review.requester.username} has no id: the API server gives one to tokens of "
        f"ServiceAccounts and to client certificates; use User",
    )


def _taken(review: Review, before: LeaseFacts, seconds: int, terms: Terms) -> Admitted:
    """Somebody begins to hold it: a new acquisition, with the review's own id."""
    owner, requester = _owner(review), review.requester
    annotations: dict[str, str | None] = {
        names.OWNER_ANNOTATION: str(owner),
        names.ACQUISITION_ANNOTATION: review.uid,
        names.LOCK_ANNOTATION: None,
        names.POD_ANNOTATION: requester.pod_name if owner.pod_uid else None,
        names.TOKEN_ANNOTATION: None,
        names.REVOKED_ANNOTATION: None,
    }
    spec = {
        "leaseDurationSeconds": seconds,
        "acquireTime": format_micro_time(terms.now),
        "renewTime": format_micro_time(terms.now),
        "leaseTransitions": before.transitions + 1 if review.operation == "UPDATE" else 0,
    }
    return Admitted((*_patch(review, annotations, spec), *_dropped(review)))


def _dropped(review: Review) -> Iterator[PatchOperation]:
    """What whoever had the Lease before put on it goes: by an owner of his it could be collected."""
    old, new = metadata_of(review.old), metadata_of(review.new)
    for field in ("ownerReferences", "finalizers"):
        if field in new and new[field] == old.get(field):
            yield PatchOperation("remove", ("metadata", field))


def _owner(review: Review) -> Identity:
    """Who takes the Lease, bound to what it says: by default to the pod, if there is one."""
    requester, bind_to = review.requester, annotations_of(review.new).get(names.BIND_TO_ANNOTATION)
    if bind_to == "User":
        return Identity(requester.username)
    if bind_to == "Credential":
        return Identity(requester.username, credential_id=requester.credential_id or "")
    return Identity(requester.username, requester.pod_uid)


def _renewed(review: Review, before: LeaseFacts, seconds: int, terms: Terms) -> Admitted:
    """The same acquisition goes on. Only its own holder's write is a sign of life. It may be revoked by this."""
    kept = annotations_of(review.old)
    old = mapping(review.old.get("spec"))
    spec = {
        "leaseDurationSeconds": seconds,
        "acquireTime": old.get("acquireTime"),
        "renewTime": format_micro_time(terms.now) if owns(review) else old.get("renewTime"),
        "leaseTransitions": before.transitions,
    }
    marks = {key: kept.get(key) for key in _OURS}
    if names.REVOKED_ANNOTATION in {*kept, *annotations_of(review.new)}:
        revoker = kept.get(names.REVOKED_ANNOTATION, review.requester.username)
        marks[names.REVOKED_ANNOTATION] = revoker
    return Admitted(_patch(review, marks, spec))


def _freed(review: Review) -> Admitted:
    """Nobody holds it after this write, so nothing of an acquisition may stay; one that is made so is kept so."""
    nothing: dict[str, str | None] = dict.fromkeys(_OF_ONE_ACQUISITION)
    if review.operation != "CREATE":
        return Admitted(_patch(review, nothing, {}))
    warning = (
        "spec.holderIdentity is empty, so this Lease locks nothing until somebody takes it by an update; it is kept "
        "for that, and while it is there nobody can create it"
    )
    return Admitted(_patch(review, {**nothing, names.KEEP_ANNOTATION: "true"}, {}), (warning,))


def _copied_from(review: Review) -> str | None:
    """Whose Lease the new one is a copy of, if it was the operator's: nobody else writes these annotations."""
    annotations = annotations_of(review.new)
    if names.WITHHELD_ANNOTATION in annotations:
        return "what kept the asset free"
    lock = annotations.get(names.LOCK_ANNOTATION)
    return f"AssetLock {lock}" if lock is not None else None


def _emptied(review: Review, original: str) -> Admitted:
    """A copy, as from a backup, that locks nothing; the operator removes it."""
    nothing: dict[str, str | None] = dict.fromkeys(_OF_ONE_ACQUISITION)
    warning = f"this Lease is a copy of that of {original}, as from a backup: it locks nothing and is removed"
    return Admitted(_patch(review, nothing, {"holderIdentity": ""}), (warning,))


def _patch(
    review: Review, annotations: dict[str, str | None], spec: dict[str, Any]
) -> tuple[PatchOperation, ...]:
    present = metadata_of(review.new).get("annotations")
    now_spec = review.new.get("spec")
    return verdict.changes(
        ("metadata", "annotations"), present if isinstance(present, dict) else None, annotations
    ) + verdict.changes(("spec",), now_spec if isinstance(now_spec, dict) else None, spec)
