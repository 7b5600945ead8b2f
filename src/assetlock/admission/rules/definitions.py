"""Decides the end of a CustomResourceDefinition: its objects go with it, and none of them asks admission."""

from __future__ import annotations

from collections.abc import Sequence

from assetlock.admission.review import Review, mapping, text
from assetlock.admission.rules import changes
from assetlock.admission.rules import targets as target_rules
from assetlock.admission.rules.targets import Claim
from assetlock.core import names


def kind_of(review: Review) -> tuple[str, str]:
    """Group and kind of what would go."""
    spec = mapping(review.old.get("spec"))
    return text(spec.get("group")), text(mapping(spec.get("names")).get("kind"))


def admits(review: Review, claims: Sequence[Claim]) -> bool:
    """Whether nobody else holds an asset that stands for objects of the kind."""
    return (
        names.BREAK_GLASS_GROUP in review.requester.groups
        or target_rules.holds(review, claims)
        or changes.finishes_deletion(review)
    )
