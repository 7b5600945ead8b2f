"""The reference page, made from the same schemas that the API server has: what to write, and what it means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assetlock.model.crds import GROUP, KINDS, VERSION, Kind, definition

EXAMPLE = f"""\
apiVersion: {GROUP}/{VERSION}
kind: Asset
metadata:
  name: shop-db
spec:
  type: Database
  maxTTL: PT4H
  targets:
  - apiVersion: apps/v1
    kind: Deployment
    name: shop-db
---
apiVersion: {GROUP}/{VERSION}
kind: AssetLock
metadata:
  name: patch-monday
spec:
  assetName: shop-db
  ttl: 30m
  wait: 10m
  reason: monthly patches
"""

_HEAD = f"""\
<!-- Generated from src/assetlock/model by python -m assetlock.model.generate; do not edit. -->
# Reference

To share a thing, describe it as an Asset. To work on it, create an AssetLock, wait until it is settled, and
delete it when you are done:

```yaml
{EXAMPLE}```

```sh
kubectl wait assetlock/patch-monday --for=condition=Settled --timeout=10m
kubectl get assets --field-selector status.lockState=Locked
```

All kinds are namespaced, of `{GROUP}/{VERSION}`. `kubectl explain asset.spec` shows what stands here.
Durations are ISO 8601 (`PT30M`, `P1DT12H`) or Kubernetes' (`30m`, `1h30m`), and are shown as they were written.

`kubectl get locks` lists all of these kinds: `locks` is their category.
"""


def reference() -> str:
    """The page, in Markdown."""
    return "\n".join([_HEAD, *(_section(kind) for kind in KINDS)])


def _section(kind: Kind) -> str:
    schema = definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    columns = ", ".join(column.title.upper() for column in kind.columns if not column.wide)
    wide = ", ".join(column.title.upper() for column in kind.columns if column.wide)
    selectable = " and ".join(f"`{path[1:]}`" for path in kind.selectable)
    lines = [
        f"## {kind.model.__name__} (`{kind.plural}`, `{kind.short}`)",
        "",
        schema["description"],
        "",
        f"Columns: {columns}; with `-o wide` also {wide}. Field selectors: {selectable}.",
    ]
    for part in ("spec", "status"):
        inner = schema["properties"][part]
        lines += [
            "",
            f"### {part}",
            "",
            inner["description"],
            "",
            "| field | type | meaning |",
            "| --- | --- | --- |",
        ]
        lines += [f"| `{path}` | {_type(field)} | {_meaning(field)} |" for path, field in _fields(inner, "")]
    lines += ["", "### What is refused", "", *_refusals(schema), ""]
    return "\n".join(lines)


def _fields(schema: dict[str, Any], prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, field in schema.get("properties", {}).items():
        path = f"{prefix}{name}{'[]' if field['type'] == 'array' else ''}"
        yield path, {**field, "required": name in schema.get("required", ())}
        yield from _fields(field.get("items", field), f"{path}.")


def _type(field: dict[str, Any]) -> str:
    if field["type"] == "array":
        return f"list of {field['items']['type']}"
    return str({"date-time": "time"}.get(field.get("format", ""), field["type"]))


def _meaning(field: dict[str, Any]) -> str:
    said = [field.get("description", "")]
    if "enum" in field:
        said.append("One of " + ", ".join(f"`{value}`" for value in field["enum"]) + ".")
    if "default" in field and "default" not in said[0].lower():
        said.append(
            f"Default: `{str(field['default']).lower() if field['type'] == 'boolean' else field['default']}`."
        )
    if field["required"] is True:
        said.append("Required.")
    said += _limits(field)
    return " ".join(said).replace("|", "\\|")


def _limits(field: dict[str, Any]) -> list[str]:
    limits = []
    if "maximum" in field:
        limits.append(f"From {field.get('minimum')} to {field['maximum']}.")
    for key, unit in {"maxLength": "characters", "maxItems": "entries", "maxProperties": "entries"}.items():
        if key in field:
            limits.append(f"At most {field[key]} {unit}.")
    return limits


def _refusals(schema: dict[str, Any]) -> list[str]:
    """Every rule's message once, with the fields that it is about."""
    places: dict[str, list[str]] = {}
    for path, rule in _rules(schema, ""):
        places.setdefault(rule["message"], []).append(f"`{(path + rule.get('fieldPath', '')).lstrip('.')}`")
    return [f"- {', '.join(paths)}: {message}" for message, paths in places.items()]


def _rules(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield path, rule
    for name, field in schema.get("properties", {}).items():
        yield from _rules(field, f"{path}.{name}")
    if "items" in schema:
        yield from _rules(schema["items"], f"{path}[]")
