"""What all our models share: camelCase outside, snake_case inside, unknown fields left alone."""

from __future__ import annotations

import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, PlainSerializer
from pydantic.alias_generators import to_camel

from assetlock.model.times import format_micro_time, format_time


class Model(BaseModel):
    """A part of a resource. Frozen: a new state is a new object."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


Time = Annotated[datetime.datetime, PlainSerializer(format_time, when_used="json")]
"""Shown in whole seconds."""

MicroTime = Annotated[datetime.datetime, PlainSerializer(format_micro_time, when_used="json")]
"""Shown with six digits of a second."""
