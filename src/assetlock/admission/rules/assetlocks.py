"""Decides AssetLocks: their holder is who asks, and their TTL is one that the operator allows.

Naming somebody else is left to the policy, which asks for the verb ``delegate`` and can't be by-passed.
"""

from __future__ import annotations

import datetime

from assetlock.admission import verdict
from assetlock.admission.review import Review, mapping, text
from assetlock.admission.rules import renewals
from assetlock.admission.verdict import Admitted, PatchOperation, Verdict
from assetlock.core.windows.calendar import LONGEST
from assetlock.model.durations import parse_duration


def decide(review: Review, longest: str, now: datetime.datetime) -> Verdict:
    """Stamp the holder of a new lock; refuse a TTL that the operator would never allow.

    One that only the asset does not allow is clipped at the grant, where what the asset says then counts. People's
    locks for maintenance may be of any length up to a year.
    """
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
    return Admitted(renewed if review.operation != "CREATE" else (*_stamped(review), *renewed))


def _excess(ttl: str, longest: str) -> str | None:
    try:
        asked = parse_duration(ttl)
    except ValueError as error:
        return str(error)
    if asked > parse_duration(longest):
        return f"{ttl} is longer than the operator allows ({longest}); renew the lock instead"
    return None


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
