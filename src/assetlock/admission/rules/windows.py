"""Decides MaintenanceWindows: refuses those that can't be read, and times that only a calendar can tell from others.

What the API server would store and we could not read later (a year 0, an offset of a day) must not get past here.
"""

from __future__ import annotations

from pydantic import ValidationError

from assetlock.admission import verdict
from assetlock.admission.review import Review, mapping
from assetlock.admission.verdict import Admitted, Refused, Verdict
from assetlock.core.windows.calendar import BadWindow, calendar_of
from assetlock.model.window import MaintenanceWindowSpec


def decide(review: Review) -> Verdict:
    """Refuse a new or changed window that has no calendar."""
    if review.operation == "DELETE":
        return Admitted()
    try:
        calendar_of(MaintenanceWindowSpec.model_validate(mapping(review.new.get("spec"))))
    except ValidationError as error:
        return _unreadable(error)
    except BadWindow as error:
        return verdict.invalid(f"spec.{error.field}", error.message)
    return Admitted()


def _unreadable(error: ValidationError) -> Refused:
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in ("spec", *first["loc"]))
    return verdict.invalid(field, first["msg"].removeprefix("Value error, "))
