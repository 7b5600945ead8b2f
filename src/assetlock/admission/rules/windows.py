"""Decides MaintenanceWindows: refuses those whose times can't be meant, as only a calendar can tell.

Nor may a time get past here that the API server would store and we could not read later: a year 0, a far offset.
"""

from __future__ import annotations

from pydantic import ValidationError

from assetlock.admission import verdict
from assetlock.admission.review import Review, mapping
from assetlock.admission.verdict import Admitted, Verdict
from assetlock.core.windows.calendar import BadWindow, calendar_of
from assetlock.model.window import MaintenanceWindowSpec

_TIMES = {"start", "end"}
"""The fields of which the schema allows more than we can read."""


def decide(review: Review) -> Verdict:
    """Refuse a new or changed window that has no calendar. What is against the schema is left to the API server."""
    if review.operation == "DELETE":
        return Admitted()
    try:
        calendar_of(MaintenanceWindowSpec.model_validate(mapping(review.new.get("spec"))))
    except ValidationError as error:
        for wrong in error.errors(include_url=False):
            if wrong["loc"][0] in _TIMES:
                return verdict.invalid(
                    f"spec.{wrong['loc'][0]}", f"{wrong['input']} can't be read: {wrong['msg']}"
                )
    except BadWindow as error:
        return verdict.invalid(f"spec.{error.field}", error.message)
    return Admitted()
