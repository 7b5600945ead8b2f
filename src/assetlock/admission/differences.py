"""What a write would change of an object. Pure; the policies ask the same questions in CEL."""

from __future__ import annotations

import json

from assetlock.admission.review import Object, Review, metadata_of

BOOKKEEPING = frozenset({"managedFields", "resourceVersion", "generation"})


def content(review: Review) -> set[str]:
    """The top-level fields, metadata apart, that differ."""
    return _differing(review.old, review.new, frozenset({"metadata"}))


def metadata(review: Review) -> set[str]:
    """The fields of metadata that differ, the API server's own bookkeeping apart."""
    return _differing(metadata_of(review.old), metadata_of(review.new), BOOKKEEPING)


def none(review: Review) -> bool:
    """Whether an update leaves everything as it was."""
    return review.operation == "UPDATE" and not content(review) and not metadata(review)


def finishes_deletion(review: Review) -> bool:
    """Whether the object is going already, and this write only helps it on its way."""
    if not metadata_of(review.old).get("deletionTimestamp"):
        return False
    if review.operation == "DELETE":
        return True
    kept = {"labels", "annotations", "ownerReferences"}
    return content(review) <= {"status"} and not metadata(review) & kept


def _differing(old: Object, new: Object, ignored: frozenset[str]) -> set[str]:
    keys = (old.keys() | new.keys()) - ignored
    return {key for key in keys if _canonical(old, key) != _canonical(new, key)}


def _canonical(fields: Object, key: str) -> str:
    """The field as text: Python takes ``1``, ``1.0`` and ``True`` for the same, JSON does not."""
    return json.dumps(fields[key], sort_keys=True) if key in fields else ""
