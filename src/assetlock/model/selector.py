"""A label selector, as Kubernetes has it elsewhere; but never one that selects everything by saying nothing."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from assetlock.model import cel
from assetlock.model.base import Model

_KEY = "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
_KEY_MESSAGE = "a label's key is a name such as app, or a domain and a name such as example.com/app"
_OURS = "assetlock.dev/"
_OURS_MESSAGE = "the labels of assetlock.dev come and go with locks, so nothing can be selected by them"
_VALUE = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
_VALUE_MESSAGE = "a label's value has letters and digits, and -, _ and . between them"

LabelKey = Annotated[
    str,
    Field(
        min_length=1,
        max_length=317,
        json_schema_extra=cel.rules(
            cel.rule(f"self.matches('{_KEY}')", _KEY_MESSAGE),
            cel.rule(f"!self.startsWith('{_OURS}')", _OURS_MESSAGE),
        ),
    ),
]
LabelValue = Annotated[str, Field(max_length=63, json_schema_extra=cel.matches(_VALUE, _VALUE_MESSAGE))]


class Requirement(Model):
    """What a label must be like."""

    model_config = ConfigDict(
        json_schema_extra=cel.rules(
            cel.rule(
                "self.operator in ['In', 'NotIn'] == (has(self.values) && self.values.size() > 0)",
                "In and NotIn need values, Exists and DoesNotExist have none",
            )
        )
    )

    key: LabelKey = Field(description="The label's key.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = Field(
        description="NotIn and DoesNotExist also select objects without the label."
    )
    values: list[LabelValue] = Field(
        default_factory=list, max_length=16, description="The values, for In and NotIn."
    )


class LabelSelector(Model):
    """Selects the objects that meet all of it."""

    model_config = ConfigDict(
        json_schema_extra=cel.rules(
            cel.rule(
                "(has(self.matchLabels) && self.matchLabels.size() > 0) "
                "|| (has(self.matchExpressions) && self.matchExpressions.size() > 0)",
                "an empty selector selects everything; say with matchLabels or matchExpressions what is meant",
            )
        )
    )

    match_labels: dict[str, LabelValue] = Field(
        default_factory=dict,
        max_length=16,
        description="Labels that an object must have with exactly these values.",
        json_schema_extra=cel.rules(
            cel.rule(f"self.all(key, key.matches('{_KEY}'))", _KEY_MESSAGE),
            cel.rule(f"!self.exists(key, key.startsWith('{_OURS}'))", _OURS_MESSAGE),
        ),
    )
    match_expressions: list[Requirement] = Field(
        default_factory=list, max_length=16, description="What else its labels must be like."
    )

    def __hash__(self) -> int:
        return hash(self.model_dump_json())
