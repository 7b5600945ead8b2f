"""From a pydantic model to the structural schema that a CRD wants: no references, no nulls, no titles.

Defaults of ``status`` fields are left out: what the operator has not observed has no state, and says so by
its generation, so that tools which read that do not take it for ready.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from pydantic import BaseModel

Schema: TypeAlias = dict[str, Any]

_ORDER = ("description", "type", "format", "enum", "default", "properties", "required", "items")
_DROPPED = ("title", "$defs", "const")
_INT32 = 2**31

NOT_OBSERVED = {"observedGeneration": 0}
"""The status of what the operator has not seen yet."""


def structural_schema(model: type[BaseModel]) -> Schema:
    """The schema of a whole resource; ``metadata`` is left to the API server."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    root = _resolve(schema, schema.get("$defs", {}))
    parts = root["properties"]
    root["properties"] = {
        "apiVersion": {"description": "The group and version of this object's schema.", "type": "string"},
        "kind": {"description": "The kind of this object.", "type": "string"},
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
        "spec": parts["spec"],
        "status": {**_without_defaults(parts["status"]), "default": NOT_OBSERVED},
    }
    root["required"].remove("metadata")
    return root


def _resolve(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    schema = _flat(schema, definitions)
    if "const" in schema:
        schema["enum"] = [schema["const"]]
    if schema.get("default") in (None, "", [], {}):
        schema.pop("default", None)
    if "description" in schema:
        schema["description"] = " ".join(schema["description"].split())
    if schema.get("type") == "integer":
        schema["format"] = _integer_format(schema)
    values = schema.pop("additionalProperties", None)
    if values is True:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    elif values:
        schema["additionalProperties"] = _resolve(values, definitions)
    if "properties" in schema:
        schema["properties"] = {n: _resolve(p, definitions) for n, p in schema["properties"].items()}
    if "items" in schema:
        schema["items"] = _resolve(schema["items"], definitions)
        schema.setdefault("x-kubernetes-list-type", "atomic")
    ordered = [*(key for key in _ORDER if key in schema), *(key for key in schema if key not in _ORDER)]
    return {key: schema[key] for key in ordered if key not in _DROPPED}


def _flat(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """References followed, and what may be missing written as what it is; the field's own words come first."""
    schema = dict(schema)
    if "$ref" in schema:
        return _flat({**definitions[schema.pop("$ref").rpartition("/")[2]], **schema}, definitions)
    if "anyOf" in schema:
        [some] = [option for option in schema.pop("anyOf") if option != {"type": "null"}]
        return _flat({**some, **schema}, definitions)
    return schema


def _integer_format(schema: Schema) -> str:
    within = schema.get("minimum", -_INT32 - 1) >= -_INT32 and schema.get("maximum", _INT32) < _INT32
    return "int32" if within else "int64"


def _without_defaults(schema: Schema) -> Schema:
    bare = {key: value for key, value in schema.items() if key != "default"}
    if "properties" in bare:
        bare["properties"] = {name: _without_defaults(part) for name, part in bare["properties"].items()}
    if "items" in bare:
        bare["items"] = _without_defaults(bare["items"])
    return bare
