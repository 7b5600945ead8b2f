"""From a pydantic model to the structural schema that a CRD wants: no references, no nulls, no titles."""

from __future__ import annotations

from typing import Any, TypeAlias

from pydantic import BaseModel

Schema: TypeAlias = dict[str, Any]

_DROPPED = ("title", "$defs", "const")


def structural_schema(model: type[BaseModel]) -> Schema:
    """The schema of a whole resource; ``metadata`` is left to the API server."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    resolved = _resolve(schema, schema.get("$defs", {}))
    resolved["properties"]["metadata"] = {"type": "object"}
    resolved["properties"] = {
        "apiVersion": {"type": "string", "description": "Group and version of this object's schema."},
        "kind": {"type": "string", "description": "The kind of this object."},
        **resolved["properties"],
    }
    return resolved


def _resolve(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    schema = dict(schema)
    if "$ref" in schema:
        schema = {**definitions[schema.pop("$ref").rpartition("/")[2]], **schema}
        return _resolve(schema, definitions)
    if "anyOf" in schema:
        [some] = [option for option in schema.pop("anyOf") if option != {"type": "null"}]
        return _resolve({**some, **schema}, definitions)
    if "const" in schema:
        schema["enum"] = [schema["const"]]
    if schema.get("default", 0) is None or isinstance(schema.get("default"), dict):
        del schema["default"]
    if "properties" in schema:
        schema["properties"] = {
            name: _resolve(value, definitions) for name, value in schema["properties"].items()
        }
    if "items" in schema:
        schema["items"] = _resolve(schema["items"], definitions)
    if schema.get("additionalProperties") is True or schema.get("x-kubernetes-preserve-unknown-fields"):
        schema.pop("additionalProperties", None)
    return {name: value for name, value in schema.items() if name not in _DROPPED}
