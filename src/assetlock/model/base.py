"""What all our models share: camelCase outside, snake_case inside, unknown fields left alone."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

from assetlock.model import cel, durations
from assetlock.model.limits import CONTROL, LONGEST_USERNAME
from assetlock.model.times import format_micro_time, format_time


class Model(BaseModel):
    """A part of a resource. Frozen: a new state is a new object."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


Time = Annotated[AwareDatetime, PlainSerializer(format_time, when_used="json")]
"""Shown in whole seconds."""

MicroTime = Annotated[AwareDatetime, PlainSerializer(format_micro_time, when_used="json")]
"""Shown with six digits of a second."""


def _duration(text: str) -> str:
    durations.parse_duration(text)
    return text


def _positive_duration(text: str) -> str:
    if not durations.parse_duration(text):
        raise ValueError(f"{text!r} is no time at all; it must be longer than zero")
    return text


_IS_DURATION = cel.rule(
    f"self.matches('{durations.PATTERN}') && self.matches('{durations.ENDING}')", durations.ACCEPTED
)
_IS_POSITIVE = cel.rule("self.matches('[1-9]') || !self.matches('0')", "must be longer than zero")

Duration = Annotated[
    str,
    AfterValidator(_duration),
    Field(max_length=durations.MAX_LENGTH, json_schema_extra=cel.rules(_IS_DURATION)),
]
"""A duration as it was written; zero is one."""

PositiveDuration = Annotated[
    str,
    AfterValidator(_positive_duration),
    Field(max_length=durations.MAX_LENGTH, json_schema_extra=cel.rules(_IS_DURATION, _IS_POSITIVE)),
]
"""A duration as it was written, longer than zero."""

ObjectName = Annotated[str, Field(min_length=1, max_length=253)]

Username = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_USERNAME,
        json_schema_extra=cel.rules(
            cel.rule(f"!self.matches(r'{CONTROL}')", "a name has no line breaks and no control characters")
        ),
    ),
]
"""Stands on a line of its own in stamps, hence without line breaks."""

PodUID = Annotated[
    str,
    Field(
        max_length=64,
        json_schema_extra=cel.matches(
            "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
            "the UID of a pod has 32 hexadecimal digits, as in 427171a0-eba9-4acd-bc5c-2d150f43b02a",
        ),
    ),
]

CredentialID = Annotated[
    str,
    Field(
        max_length=256,
        json_schema_extra=cel.matches(
            "^[0-9A-Za-z]+=[!-~]+$",
            "the id of a credential is like JTI=427171a0-eba9-4acd-bc5c-2d150f43b02a; kubectl auth whoami shows it",
        ),
    ),
]
"""As the API server gives it: ``JTI=…`` of a token, ``X509SHA256=…`` of a client certificate."""

PodName = Annotated[
    str,
    Field(
        max_length=253,
        json_schema_extra=cel.matches(cel.DNS_SUBDOMAIN, "the name of a pod has a-z, 0-9, - and single dots"),
    ),
]

AssetName = Annotated[
    str,
    Field(
        max_length=253,
        json_schema_extra=cel.rules(cel.asset_name("self")),
    ),
]
"""Longer ones reach the rule, which says it better than a length does."""
