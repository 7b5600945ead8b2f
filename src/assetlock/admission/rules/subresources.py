"""Decides what carries no labels: scaling a target, evicting it, or looking inside.

The guards on the namespace are what counts, as for the policy behind. Controllers of Kubernetes are not exempt:
what they do to the holder's things they do to the objects themselves.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from assetlock.admission import facts, verdict
from assetlock.admission.review import Object, Review, mapping
from assetlock.admission.rules import targets as target_rules
from assetlock.admission.rules.targets import Claim
from assetlock.admission.verdict import Refused
from assetlock.core import names
from assetlock.core.fence import namespace_fence
from assetlock.core.fence.namespace_fence import NamespaceFence
from assetlock.core.fence.stamp import Stamp
from assetlock.model.limits import MOST_NAMESPACE_ANNOTATIONS


def claims_on(review: Review, annotations: Mapping[str, str]) -> tuple[Claim, ...]:
    """The guards among a namespace's annotations that close this subresource of this object."""
    guards = guards_among(annotations)
    return tuple(claim(key, found) for key, found in guards.items() if _closes(found, review))


def guards_among(annotations: Mapping[str, str]) -> dict[str, NamespaceFence]:
    """The guards that can be read, by annotation."""
    if len(annotations) > MOST_NAMESPACE_ANNOTATIONS:
        return {}
    keys = sorted(
        key for key in annotations if key.endswith(names.NAMESPACE_FENCE_SUFFIX) and names.claimant(key)
    )
    return {
        key: found
        for key in keys
        if (found := namespace_fence.namespace_fence_of(annotations, key)) is not None
    }


def claim(key: str, found: NamespaceFence) -> Claim:
    """The asset's claim, as its stamp on the object would be."""
    stamp = key.removesuffix(names.NAMESPACE_FENCE_SUFFIX) + names.STAMP_SUFFIX
    return Claim(stamp, str(found), Stamp("", found.holders, found.exempt))


def admits(review: Review, claims: Sequence[Claim]) -> bool:
    """Whether the request may go through."""
    if names.BREAK_GLASS_GROUP in review.requester.groups or target_rules.holds(review, claims):
        return True
    if review.subresource != "scale":
        return False
    return not target_rules.refusing(review, claims) or _replicas(review.old) == _replicas(review.new)


def refused(
    review: Review,
    claims: Sequence[Claim],
    assets: Mapping[tuple[str, str], facts.AssetFacts | None],
    now: datetime.datetime,
) -> Refused:
    """Say who holds the object; for an eviction in the form that a drain waits for."""
    refusal = target_rules.refused(review, claims, assets, now)
    return verdict.not_now(refusal) if review.subresource == "eviction" else refusal


def _closes(found: NamespaceFence, review: Review) -> bool:
    return any(
        (target.resource, target.name) == (review.resource, _pod(review))
        and review.subresource in namespace_fence.ALWAYS.union(target.closed)
        for target in found.targets
    )


def _pod(review: Review) -> str:
    """A proxy is asked for as ``name``, ``name:port`` or ``https:name:port``."""
    if review.subresource != "proxy" or ":" not in review.name:
        return review.name
    parts = review.name.split(":")
    return parts[1] if len(parts) == 3 else parts[0]


def _replicas(scale: Object) -> object:
    return mapping(scale.get("spec")).get("replicas", 0)
