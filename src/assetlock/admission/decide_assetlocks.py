"""Decides AssetLocks: their holder is who asks, and their TTL is one that the operator allows.

Naming somebody else is left to the policy, which asks for the verb ``delegate`` and can't be by-passed.
"""

from __future__ import annotations

from assetlock.admission import facts, verdict
from assetlock.admission.review import Review, mapping, text
from assetlock.admission.verdict import Admitted, PatchOperation, Verdict
from assetlock.model.durations import parse_duration


def asset_name(review: Review) -> str:
    """The asset that the lock is for."""
    return text(mapping(review.new.get("spec")).get("assetName"))


def decide(review: Review, asset: facts.AssetFacts | None, longest: str) -> Verdict:
    """Stamp the holder of a new lock; refuse a TTL that neither operator nor asset would allow."""
    ttl = text(mapping(review.new.get("spec")).get("ttl"))
    before = text(mapping(review.old.get("spec")).get("ttl"))
    if ttl and ttl != before:
        excess = _excess(ttl, asset, longest)
        if excess:
            return verdict.invalid(excess)
    if review.operation != "CREATE":
        return Admitted()
    return Admitted(_stamped(review))


def _excess(ttl: str, asset: facts.AssetFacts | None, longest: str) -> str | None:
    try:
        asked = parse_duration(ttl)
    except ValueError as error:
        return f"spec.ttl: {error}"
    if asked > parse_duration(longest):
        return f"spec.ttl: {ttl} is longer than the operator allows ({longest}); renew the lock instead"
    if asset is not None and asset.max_ttl:
        try:
            allowed = parse_duration(asset.max_ttl)
        except ValueError:
            return None
        if asked > allowed:
            return f"spec.ttl: {ttl} is longer than the asset allows (spec.maxTTL: {asset.max_ttl})"
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
    if {**holder, **named} == named:
        return ()
    return (PatchOperation("add", ("spec", "holder"), {**holder, **named}),)
