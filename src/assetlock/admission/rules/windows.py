"""Decides MaintenanceWindows: refuses those whose times can't be meant, as only a calendar can tell."""

from __future__ import annotations

from pydantic import ValidationError

from assetlock.admission import verdict
from assetlock.admission.review import Review, mapping
from assetlock.admission.verdict import Admitted, Verdict
from assetlock.core.windows.calendar import BadWindow, calendar_of
from assetlock.model.window import MaintenanceWindowSpec


def decide(review: Review) -> Verdict:
    """Refuse a new or changed window that has no calendar. What is against the schema is left to the API server."""
    if review.operation == "DELETE":
        return Admitted()
    try:
        calendar_of(MaintenanceWindowSpec.model_validate(mapping(review.new.get("spec"))))
    except ValidationError:
        return Admitted()
    except BadWindow as error:
        return verdict.invalid(f"spec.{error.field}", error.message)
    return Admitted()
