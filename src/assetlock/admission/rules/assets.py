"""Decides writes to Assets: a locked one is its holder's, and nobody locks what they could not change."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Iterable, Mapping
from typing import Any

from assetlock.admission import facts, verdict
from assetlock.admission.review import Object, Review, annotations_of, mapping, metadata_of, text
from assetlock.admission.rules import changes
from assetlock.admission.verdict import Admitted, PatchOperation, Refused, Verdict
from assetlock.core import messages, names
from assetlock.core.setter import Setter

MOST_NAMED = 5


@dataclasses.dataclass(frozen=True, slots=True)
class NamedTarget:
    """A target as an Asset has it; ``namespace`` is the Asset's own where it has none.

    ``name`` is empty for one with a ``selector`` (its JSON): that may be any object of the kind.
    """

    api_version: str
    kind: str
    name: str
    namespace: str
    selector: str = ""

    def __str__(self) -> str:
        what = f"{self.kind} {self.name}" if self.name else f"every {self.kind}"
        return f"{what} ({self.api_version}, namespace {self.namespace})"


def locked(review: Review, now: datetime.datetime) -> Refused | None:
    """The refusal, if somebody else holds the asset."""
    holders = facts.asset_facts(review.old).holders
    writers = [writer for holder in holders for writer in holder.writers]
    if not holders or any(review.requester.is_one_with(writer) for writer in writers):
        return None
    if _changes_nothing(review) or changes.finishes_deletion(review):
        return None
    told = [holder.told for holder in holders]
    return verdict.locked(
        messages.asset_locked(review.name, review.namespace, told, now),
        causes=tuple(str(holder) for holder in told[: messages.MOST_HOLDERS]),
        retry_after=facts.seconds_until(told, now, longest=60),
    )


def new_targets(review: Review) -> list[NamedTarget]:
    """The targets that the write adds: those that the requester must be able to update."""
    before = set(_targets(review.old, review.namespace))
    return [
        target for target in dict.fromkeys(_targets(review.new, review.namespace)) if target not in before
    ]


def all_targets(review: Review) -> list[NamedTarget]:
    """The targets that the Asset has after the write."""
    return list(_targets(review.new, review.namespace))


def decided(review: Review, denied: Iterable[NamedTarget]) -> Verdict:
    """Record the requester with targets that it may update; refuse if it may not update some of them."""
    targets = list(denied)
    if not targets:
        return Admitted(_signed(review))
    named = ", ".join(str(target) for target in targets[:MOST_NAMED])
    more = f" and {len(targets) - MOST_NAMED} more" if len(targets) > MOST_NAMED else ""
    return verdict.forbidden(
        f"{review.requester.username} may not update {named}{more}, and nobody can lock what they could not "
        f"change: take it out of spec.targets, or have the right to update it granted"
    )


def _signed(review: Review) -> tuple[PatchOperation, ...]:
    """Who set the targets: the requester if they change, else who it was before, whatever the write says."""
    before, after = (_raw_targets(asset) for asset in (review.old, review.new))
    setter: str | None = annotations_of(review.old).get(names.SETTER_ANNOTATION)
    if after != before:
        setter = str(Setter(review.requester.username, review.requester.groups)) if after else None
    present = metadata_of(review.new).get("annotations")
    return verdict.changes(
        ("metadata", "annotations"),
        present if isinstance(present, dict) else None,
        {names.SETTER_ANNOTATION: setter},
    )


def _changes_nothing(review: Review) -> bool:
    return (
        review.operation == "UPDATE"
        and not changes.content(review) - {"status"}
        and not changes.metadata(review)
    )


def _raw_targets(asset: Object) -> list[Any]:
    targets: Any = mapping(asset.get("spec")).get("targets")
    return targets if isinstance(targets, list) else []


def _targets(asset: Object, namespace: str) -> Iterable[NamedTarget]:
    for item in _raw_targets(asset):
        fields: Mapping[str, Any] = mapping(item)
        yield NamedTarget(
            text(fields.get("apiVersion")),
            text(fields.get("kind")),
            text(fields.get("name")),
            text(fields.get("namespace")) or namespace,
            json.dumps(selector, sort_keys=True) if (selector := fields.get("selector")) else "",
        )
