"""Decides writes to guarded namespaces: none is deleted over somebody's lock, and what is ours on them stays.

A locked thing in a namespace that is deleted would keep that from going, with everything else half gone. So the
deletion is refused as a whole.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence

from assetlock.admission import facts, verdict
from assetlock.admission.facts import AssetFacts
from assetlock.admission.review import Review, annotations_of, labels_of, metadata_of
from assetlock.admission.rules import changes
from assetlock.admission.rules import targets as target_rules
from assetlock.admission.rules.subresources import claim, guards_among
from assetlock.admission.rules.targets import LONGEST_RETRY, Claim
from assetlock.admission.verdict import Admitted, Refused
from assetlock.core import messages, names


def kept(review: Review) -> Admitted:
    """Let a change of the namespace through, with our label and guards as they were."""
    if names.BREAK_GLASS_GROUP in review.requester.groups:
        return Admitted()
    before, after = annotations_of(review.old), annotations_of(review.new)
    ours = {key for key in before.keys() | after.keys() if key.endswith(names.NAMESPACE_FENCE_SUFFIX)}
    annotations = {key: before.get(key) for key in ours}
    labels = {names.GUARDED_LABEL: labels_of(review.old).get(names.GUARDED_LABEL)}
    metadata = metadata_of(review.new)
    return Admitted(
        verdict.changes(("metadata", "labels"), metadata.get("labels"), labels)
        + verdict.changes(("metadata", "annotations"), metadata.get("annotations"), annotations)
    )


def claims_on(review: Review, there: Mapping[str, AssetFacts]) -> tuple[Claim, ...]:
    """The locks that stand against a deletion: of the assets there, and of others with something in there."""
    own = [target_rules.claim_of(name, review.name, asset) for name, asset in sorted(there.items())]
    guards = guards_among(annotations_of(review.old))
    elsewhere = [claim(key, found) for key, found in guards.items()]
    return (*own, *(other for other in elsewhere if other.namespace != review.name))


def admits(review: Review, claims: Sequence[Claim]) -> bool:
    """Whether the namespace may be deleted."""
    return (
        names.BREAK_GLASS_GROUP in review.requester.groups
        or target_rules.holds(review, claims)
        or changes.finishes_deletion(review)
    )


def refused(
    review: Review,
    claims: Sequence[Claim],
    assets: Mapping[tuple[str, str], AssetFacts | None],
    now: datetime.datetime,
) -> Refused:
    """Say which locks stand against the deletion."""
    others = [one for one in claims if not target_rules.holds(review, [one])]
    held = [
        (
            f"asset {one.asset} in namespace {one.namespace}",
            target_rules.holders_of(one, assets.get((one.namespace, one.asset))),
        )
        for one in others
    ]
    holders = [holder for _, them in held for holder in them]
    return verdict.locked(
        messages.namespace_locked(review.name, held),
        causes=tuple(f"{what}: {messages.listed(them)}" for what, them in held[: messages.MOST_HOLDERS]),
        retry_after=facts.seconds_until(holders, now, longest=LONGEST_RETRY),
    )
