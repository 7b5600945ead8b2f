"""What a write would change of an object. Pure; the policies ask the same questions in CEL."""

from __future__ import annotations

import json
from collections.abc import Iterable

from assetlock.admission.review import Object, Review, metadata_of
from assetlock.admission.verdict import PatchOperation

BOOKKEEPING = frozenset({"managedFields", "resourceVersion", "generation"})
_KEPT_AS_SENT = frozenset({"resourceVersion", "generation"})


def content(review: Review) -> set[str]:
    """The top-level fields, metadata apart, that differ."""
    return _differing(review.old, review.new, frozenset({"metadata"}))


def metadata(review: Review) -> set[str]:
    """The fields of metadata that differ, the API server's own bookkeeping apart."""
    return _differing(metadata_of(review.old), metadata_of(review.new), BOOKKEEPING)


def none(review: Review) -> bool:
    """Whether an update leaves everything as it was."""
    return review.operation == "UPDATE" and not content(review) and not metadata(review)


def status_alone(review: Review) -> bool:
    """Whether the write goes to the status, and leaves alone what else can be changed through it."""
    guarded = {"labels", "annotations", "finalizers", "ownerReferences"}
    return review.subresource == "status" and not metadata(review) & guarded


def undone(review: Review) -> tuple[PatchOperation, ...]:
    """The steps that put the old content back into an update, and the record of who owns which field.

    The version that the client names stays: a write that was decided on another one is a conflict all the same.
    """
    old, new = metadata_of(review.old), metadata_of(review.new)
    fields = _differing(old, new, _KEPT_AS_SENT)
    return (*_put_back((), review.old, content(review)), *_put_back(("metadata",), old, fields))


def finishes_deletion(review: Review) -> bool:
    """Whether the object is going already, and this write only helps it on its way."""
    if not metadata_of(review.old).get("deletionTimestamp"):
        return False
    if review.operation == "DELETE":
        return True
    kept = {"labels", "annotations", "ownerReferences"}
    ending = {"status", "spec"} if review.subresource == "finalize" else {"status"}
    return content(review) <= ending and not metadata(review) & kept


def _differing(old: Object, new: Object, ignored: frozenset[str]) -> set[str]:
    keys = (old.keys() | new.keys()) - ignored
    return {key for key in keys if _canonical(old, key) != _canonical(new, key)}


def _put_back(path: tuple[str, ...], old: Object, fields: Iterable[str]) -> Iterable[PatchOperation]:
    for field in sorted(fields):
        if field in old:
            yield PatchOperation("add", (*path, field), old[field])
        else:
            yield PatchOperation("remove", (*path, field))


def _canonical(fields: Object, key: str) -> str:
    """The field as text: Python takes ``1``, ``1.0`` and ``True`` for the same, JSON does not."""
    return json.dumps(fields[key], sort_keys=True) if key in fields else ""
