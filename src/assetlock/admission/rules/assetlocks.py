"""Decides AssetLocks: their holder is who asks, and their TTL is one that the operator allows.

Naming somebody else is left to the policy, which asks for the verb ``delegate`` and can't be by-passed.
"""

from __future__ import annotations

import datetime

from assetlock.admission import verdict
from assetlock.admission.review import Review, annotations_of, mapping, metadata_of, text
from assetlock.admission.rules import renewals
from assetlock.admission.verdict import Admitted, PatchOperation, Refused, Verdict
from assetlock.core import names
from assetlock.core.windows.calendar import LONGEST
from assetlock.model.durations import parse_duration


def decide(review: Review, longest: str, now: datetime.datetime) -> Verdict:
    """Stamp the holder of a new lock; refuse a TTL that the operator would never allow.

    One that only the asset does not allow is clipped at the grant, where what the asset says then counts. People's
    locks for maintenance may be of any length up to a year.
    """
    if (malformed := _malformed(review)) is not None:
        return malformed
    spec = mapping(review.new.get("spec"))
    ttl, before = text(spec.get("ttl")), text(mapping(review.old.get("spec")).get("ttl"))
    if text(spec.get("mode")) == "Maintenance":
        longest = f"P{LONGEST.days}D"
    excess = _excess(ttl, longest) if ttl and ttl != before else None
    if excess:
        return verdict.invalid("spec.ttl", excess)
    if (too_late := renewals.refusal(review)) is not None:
        return too_late
    renewed = renewals.stamped(review, now)
    if review.operation != "CREATE":
        return Admitted(renewed)
    marks, warnings = _marked(review)
    return Admitted((*_stamped(review), *renewed, *marks), warnings)


def _malformed(review: Review) -> Refused | None:
    """What the schema would refuse in words of its own, or not at all once the holder is stamped."""
    spec = review.new.get("spec")
    if not isinstance(spec, dict):
        return verdict.invalid(
            "spec", "is missing; write at least assetName, such as spec: {assetName: vm-1}"
        )
    holder = spec.get("holder")
    if holder is not None and not isinstance(holder, dict):
        return verdict.invalid("spec.holder", f"write username there: holder: {{username: {holder}}}")
    for field in ("ttl", "wait"):
        value = spec.get(field)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return verdict.invalid(f"spec.{field}", f'{value} has no unit; write "{value}s" or "{value}m"')
    return None


def _excess(ttl: str, longest: str) -> str | None:
    try:
        asked = parse_duration(ttl)
    except ValueError as error:
        return str(error)
    if asked > parse_duration(longest):
        return f"{ttl} is longer than the operator allows ({longest}); renew the lock instead"
    return None


def _marked(review: Review) -> tuple[tuple[PatchOperation, ...], tuple[str, ...]]:
    """Note which request created the lock. One that comes with such a note is a copy, and is told so."""
    annotations = annotations_of(review.new)
    original = annotations.get(names.REQUEST_ANNOTATION) or annotations.get(names.COPY_ANNOTATION)
    marks = {names.REQUEST_ANNOTATION: review.uid, names.COPY_ANNOTATION: original}
    present = metadata_of(review.new).get("annotations")
    patch = verdict.changes(
        ("metadata", "annotations"), present if isinstance(present, dict) else None, marks
    )
    if original is None:
        return patch, ()
    return patch, (
        f"{names.REQUEST_ANNOTATION} says that this is a copy of an AssetLock, as from a backup: it locks nothing",
    )


def _stamped(review: Review) -> tuple[PatchOperation, ...]:
    requester = review.requester
    spec = mapping(review.new.get("spec"))
    named = mapping(spec.get("holder"))
    if named and named.get("username") != requester.username:
        return ()
    holder = {"username": requester.username}
    if requester.pod_name and requester.pod_uid:
        holder |= {"podName": requester.pod_name, "podUID": requester.pod_uid}
    if spec.get("bindTo") == "Credential" and requester.credential_id:
        holder["credentialId"] = requester.credential_id
    if {**holder, **named} == named:
        return ()
    return (PatchOperation("add", ("spec", "holder"), {**holder, **named}),)
