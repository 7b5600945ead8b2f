"""Decides new objects: making one under a locked name, or one that a locked asset's selector selects, is a write.

Nothing can be stamped yet, so this is decided by the assets alone, and nothing stands behind it: what slips by is
stamped as soon as the controller sees it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assetlock.admission.facts import AssetFacts, KnownTarget
from assetlock.admission.review import Review, labels_of
from assetlock.admission.rules import controllers
from assetlock.admission.rules import targets as target_rules
from assetlock.admission.rules.targets import Claim
from assetlock.core import names
from assetlock.core.selection import selects


def claims_on(review: Review, assets: Mapping[tuple[str, str], AssetFacts]) -> tuple[Claim, ...]:
    """The locks of the assets that the new object would be a target of."""
    return tuple(
        target_rules.claim_of(name, namespace, asset)
        for (namespace, name), asset in sorted(assets.items())
        if asset.holders and any(_is_meant(target, review) for target in asset.targets)
    )


def admits(review: Review, claims: Sequence[Claim]) -> bool:
    """Whether the object may be made."""
    return (
        names.BREAK_GLASS_GROUP in review.requester.groups
        or not target_rules.refusing(review, claims)
        or controllers.may_create(review)
    )


def _is_meant(target: KnownTarget, review: Review) -> bool:
    if (target.group, target.kind) != (review.group, review.kind):
        return False
    if review.namespace and target.namespace != review.namespace:
        return False
    if target.selector is not None:
        return selects(target.selector, labels_of(review.new))
    return bool(target.name) and target.name == review.name
