"""What all our models share: camelCase outside, snake_case inside, unknown fields left alone."""

from __future__ import annotations

import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

from assetlock.model.durations import PATTERN
from assetlock.model.times import format_micro_time, format_time


class Model(BaseModel):
    """A part of a resource. Frozen: a new state is a new object."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


def rules(*pairs: tuple[str, str]) -> Any:
    """CEL rules for the API server to check, each with the message that users read when it is broken."""
    return Field(
        json_schema_extra={
            "x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in pairs]
        }
    )


_TIME_SCHEMA = WithJsonSchema({"type": "string", "format": "date-time"})

Time = Annotated[datetime.datetime, PlainSerializer(format_time, when_used="json"), _TIME_SCHEMA]
"""Shown in whole seconds."""

MicroTime = Annotated[datetime.datetime, PlainSerializer(format_micro_time, when_used="json"), _TIME_SCHEMA]
"""Shown with six digits of a second."""

Username = Annotated[str, Field(min_length=1, max_length=1024)]
"""As the API server authenticated it."""

_IS_DURATION = (
    f"self.matches(r'{PATTERN}') && self.matches('[0-9]') && !self.endsWith('T')",
    "write a duration as ISO 8601 (PT30M, P1DT12H) or like 30m, 1h30m, 90s; no years, months, weeks or signs",
)

WaitDuration = Annotated[str, Field(max_length=64), rules(_IS_DURATION)]
"""A duration, kept as it was written; zero is fine."""

Duration = Annotated[
    str,
    Field(max_length=64),
    rules(
        _IS_DURATION,
        ("!self.matches('[0-9]') || self.matches('[1-9]')", "a duration of zero would end at once"),
    ),
]
"""A duration above zero, kept as it was written."""
