"""Renewals of AssetLocks by ``spec.renewTime``: the time is the server's, and renewals in quick succession are one.

A renewal that is dropped here leaves the object as it was, so it costs neither a version of it nor a write by the
operator. It is dropped only while the lock lasts at least ten times as long as it is since the last one.
"""

from __future__ import annotations

import datetime

from assetlock.admission import verdict
from assetlock.admission.facts import moment
from assetlock.admission.review import Object, Review, mapping, text
from assetlock.admission.verdict import PatchOperation, Refused
from assetlock.core import messages
from assetlock.model.assetlock import LockState
from assetlock.model.times import format_micro_time

FIELD = "renewTime"
_ENDED = frozenset(str(state) for state in LockState if state.terminal)
CLOSEST = datetime.timedelta(seconds=10)
"""Two renewals are not closer to each other than this, or a tenth of what is left of the lock."""


def refusal(review: Review) -> Refused | None:
    """The refusal of a renewal that comes too late, which says how the lock ended."""
    status = mapping(review.old.get("status"))
    state = text(status.get("state"))
    if not _is_renewal(review) or state not in _ENDED:
        return None
    return verdict.invalid(f"spec.{FIELD}", messages.has_ended(review.name, state, _why(status)))


def stamped(review: Review, now: datetime.datetime) -> tuple[PatchOperation, ...]:
    """The present time in place of whatever the client wrote; the former one where nothing is to be renewed."""
    spec = mapping(review.new.get("spec"))
    former = mapping(review.old.get("spec")).get(FIELD)
    if not _is_renewal(review):
        return verdict.changes(("spec",), spec, {FIELD: former}) if former else ()
    if former is not None and _is_one_with(former, review.old, now):
        return verdict.changes(("spec",), spec, {FIELD: former})
    return verdict.changes(("spec",), spec, {FIELD: format_micro_time(now)})


def _is_renewal(review: Review) -> bool:
    written = mapping(review.new.get("spec")).get(FIELD)
    return moment(written) is not None and written != mapping(review.old.get("spec")).get(FIELD)


def _is_one_with(former: object, lock: Object, now: datetime.datetime) -> bool:
    """Whether the last renewal is so young that another one makes no difference."""
    last, until = moment(former), moment(mapping(lock.get("status")).get("expireTime"))
    if last is None or until is None:
        return False
    return datetime.timedelta() <= now - last < min(CLOSEST, (until - now) / 10)


def _why(status: Object) -> str:
    conditions = status.get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if text(mapping(condition).get("type")) == "Finished":
            return text(mapping(condition).get("message"))
    return ""
