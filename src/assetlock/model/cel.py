"""Rules that the API server checks for us, in CEL, each with the sentence that people read when it fails.

A rule is preferred to a pattern, as a pattern's refusal shows a regular expression and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic.config import JsonDict

from assetlock.model.limits import LONGEST_ASSET_NAME

DNS_LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"


def rule(expression: str, message: str, *, field: str | None = None) -> JsonDict:
    """One rule; ``field`` is what the refusal points at, when that is only a part of what is looked at."""
    path: JsonDict = {"fieldPath": f".{field}"} if field else {}
    return {"rule": expression, "message": message, **path}


def asset_name(value: str, *, field: str | None = None) -> JsonDict:
    """The rule that ``value`` may be the name of an asset. The name of an object is a DNS subdomain anyhow."""
    return rule(
        f"{value}.size() <= {LONGEST_ASSET_NAME} && {value}.matches('{DNS_SUBDOMAIN}')",
        f"an asset's name is a DNS subdomain of at most {LONGEST_ASSET_NAME} characters: a-z, 0-9, - and single dots",
        field=field,
    )


def rule_on_change(expression: str, message: str) -> JsonDict:
    """One rule that costs nothing while the value stays as it is, as in all writes of a status."""
    unless_same = f"oldSelf.hasValue() && oldSelf.value() == self || {expression}"
    return {**rule(unless_same, message), "optionalOldSelf": True}


def rules(*several: JsonDict) -> JsonDict:
    """Rules as a part of a JSON schema."""
    return {"x-kubernetes-validations": list(several)}


def matches(pattern: str, message: str) -> JsonDict:
    """A string that looks like this."""
    return rules(rule(f"self.matches('{pattern}')", message))


def immutable_but_for(*mutable: str, message: str, also: tuple[JsonDict, ...] = ()) -> Callable[[Any], None]:
    """Each field of the model stays as it was created, absent ones too, but for these; new fields as well."""

    def extend(schema: dict[str, Any]) -> None:
        required = schema.get("required", ())
        kept = [name for name in schema["properties"] if name not in mutable]
        frozen = [rule(_unchanged(name, name in required), message, field=name) for name in kept]
        schema.update(rules(*also, *frozen))

    return extend


def _unchanged(name: str, required: bool) -> str:
    same = f"self.{name} == oldSelf.{name}"
    if required:
        return same
    return f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || {same})"
