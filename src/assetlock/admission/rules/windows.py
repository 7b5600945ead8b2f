"""Decides MaintenanceWindows: refuses those whose times can't be meant, as only a calendar can tell.

Nor may a time get past here that the API server would store and we could not read later: a year 0, a far offset.
Warns of those that can hardly be meant: one that never ends, or has ended.
"""

from __future__ import annotations

import datetime

from pydantic import ValidationError

from assetlock.admission import verdict
from assetlock.admission.review import Review, mapping
from assetlock.admission.verdict import Admitted, Verdict
from assetlock.core.windows.calendar import BadWindow, never_ends, never_starts
from assetlock.model.window import MaintenanceWindowSpec

_TIMES = {"start", "end"}
"""The fields of which the schema allows more than we can read."""


def decide(review: Review, now: datetime.datetime) -> Verdict:
    """Refuse a new or changed window that has no calendar. What is against the schema is left to the API server."""
    if review.operation == "DELETE":
        return Admitted()
    try:
        spec = MaintenanceWindowSpec.model_validate(mapping(review.new.get("spec")))
        doubt = never_ends(spec, now) or never_starts(spec, now)
    except ValidationError as error:
        for wrong in error.errors(include_url=False):
            if wrong["loc"][0] in _TIMES:
                return verdict.invalid(
                    f"spec.{wrong['loc'][0]}", f"{wrong['input']} can't be read: {wrong['msg']}"
                )
        return Admitted()
    except BadWindow as error:
        return verdict.invalid(f"spec.{error.field}", error.message)
    if doubt is None or spec.suspend:
        return Admitted()
    return Admitted(warnings=(f"window {review.name}: {doubt}",))
