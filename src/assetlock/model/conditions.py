"""Conditions, by the Kubernetes API conventions: ``lastTransitionTime`` moves only with the status.

A message that is too long for the API server is cut short rather than lost.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from assetlock.model.base import Model, Time

MESSAGE_LIMIT = 32768


class Condition(Model):
    """One aspect of an object's state."""

    type: str = Field(max_length=316, description="What it is about, in CamelCase.")
    status: Literal["True", "False", "Unknown"] = Field(description="True, False or Unknown.")
    reason: str = Field("", max_length=1024, description="Why, in CamelCase, for programs.")
    message: str = Field("", max_length=MESSAGE_LIMIT, description="Why, for people.")
    last_transition_time: Time = Field(description="When the status last changed.")
    observed_generation: int | None = Field(None, ge=0, description="The generation that it was made from.")


Conditions = Annotated[
    list[Condition],
    Field(
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
]
"""At most one of each type."""


def find_condition(conditions: Sequence[Condition], type: str) -> Condition | None:
    """The condition of this type, if there is one."""
    return next((condition for condition in conditions if condition.type == type), None)


def reason_of(conditions: Sequence[Condition], type: str) -> str:
    """The reason of the condition of this type; empty where there is none."""
    found = find_condition(conditions, type)
    return found.reason if found else ""


def set_condition(
    conditions: Sequence[Condition],
    type: str,
    status: str,
    reason: str,
    message: str,
    *,
    now: datetime.datetime,
    observed_generation: int | None,
) -> list[Condition]:
    """The conditions with this one added or brought up to date, in their old order."""
    old = find_condition(conditions, type)
    if old is not None and (old.status, old.reason, old.message, old.observed_generation) == (
        status,
        reason,
        message[:MESSAGE_LIMIT],
        observed_generation,
    ):
        return list(conditions)
    new = Condition(
        type=type,
        status=status,
        reason=reason,
        message=message[:MESSAGE_LIMIT],
        last_transition_time=old.last_transition_time if old and old.status == status else now,
        observed_generation=observed_generation,
    )
    if old is None:
        return [*conditions, new]
    return [new if condition is old else condition for condition in conditions]
