"""Writes the chart's schema, its README and a page of the documentation from `values.yaml`.

Run ``python -m charts.tools.values [--check]``. A value's comment is its description in all of them. Its type is
that of the default; a comment line ``@schema {…}`` adds to what follows from that. A mapping with comments inside is
closed: a misspelt value is refused. A mapping without any is a piece of Kubernetes' own API, taken as it is.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from charts.tools import helm

SCHEMA, README = helm.CHART / "values.schema.json", helm.CHART / "README.md"
PAGE = helm.ROOT / "docs" / "values.md"

_HINT = "@schema "
_TYPES = {bool: "boolean", int: "integer", str: "string", list: "array", dict: "object"}
_HEAD = helm.CHART / "README.head.md"


@dataclasses.dataclass(frozen=True, slots=True)
class Value:
    """One value: where it is, what it is for, its default, and the values inside."""

    path: str
    description: str
    hints: dict[str, Any]
    default: Any
    inside: tuple[Value, ...]

    @property
    def is_closed(self) -> bool:
        """Whether only the values inside are allowed."""
        return any(one.description or one.is_closed for one in self.inside)


def values() -> tuple[Value, ...]:
    """Every value of the chart."""
    text = (helm.CHART / "values.yaml").read_text(encoding="utf-8")
    root = yaml.compose(text)
    if not isinstance(root, yaml.MappingNode):
        raise TypeError("values.yaml is no mapping")
    return tuple(_inside(root, "", text.splitlines(), yaml.safe_load(text)))


def schema() -> str:
    """The JSON schema."""
    root = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the chart assetlock"}
    extra = {"global": {"type": "object"}}
    document = {**root, **_closed(values())}
    document["properties"] = {**document["properties"], **extra}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def readme() -> str:
    """What is said by hand, and a table of all values."""
    return _HEAD.read_text(encoding="utf-8").rstrip("\n") + "\n\n" + _table()


def page() -> str:
    """The same table for the documentation."""
    return f"# Chart values\n\nGenerated from `charts/assetlock/values.yaml`.\n\n{_table()}"


def _table() -> str:
    lines = ["| value | default | what for |", "| --- | --- | --- |"]
    lines += [
        f"| `{value.path}` | `{json.dumps(value.default, ensure_ascii=False)}` | {value.description} |"
        for value in _leaves(values())
    ]
    return "\n".join(lines) + "\n"


def undocumented() -> list[str]:
    """The values that nothing is said of."""
    return [value.path for value in _leaves(values()) if not value.description]


def outdated() -> list[str]:
    """The files that differ from what `values.yaml` says."""
    return [
        str(path.relative_to(helm.ROOT))
        for path, text in _files().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def _files() -> dict[pathlib.Path, str]:
    return {SCHEMA: schema(), README: readme(), PAGE: page()}


def main() -> int:
    """Write the files, or say which are outdated."""
    parser = argparse.ArgumentParser(description="Write what is said of the chart's values.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something is outdated")
    options = parser.parse_args()
    names = outdated()
    for name in names:
        print(f"{name} is outdated" if options.check else f"wrote {name}")
    for path, text in () if options.check else _files().items():
        path.write_text(text, encoding="utf-8")
    return 1 if options.check and names else 0


def _inside(node: yaml.MappingNode, prefix: str, lines: list[str], defaults: Any) -> Iterator[Value]:
    for key, child in node.value:
        comment = list(_comment(lines, key.start_mark.line))
        hints = [json.loads(line.removeprefix(_HINT)) for line in comment if line.startswith(_HINT)]
        path, default = f"{prefix}{key.value}", defaults[key.value]
        nested = isinstance(child, yaml.MappingNode)
        yield Value(
            path,
            " ".join(line for line in comment if not line.startswith(_HINT)),
            hints[0] if hints else {},
            default,
            tuple(_inside(child, f"{path}.", lines, default)) if nested else (),
        )


def _comment(lines: list[str], number: int) -> list[str]:
    """The comment right above a line, as indented as it."""
    indent = len(lines[number]) - len(lines[number].lstrip())
    found = []
    while number and lines[number - 1].startswith(" " * indent + "#"):
        number -= 1
        found.append(lines[number][indent:].removeprefix("#").strip())
    return found[::-1]


def _leaves(inside: tuple[Value, ...]) -> Iterator[Value]:
    for value in inside:
        if value.is_closed:
            yield from _leaves(value.inside)
        else:
            yield value


def _closed(inside: tuple[Value, ...]) -> dict[str, Any]:
    properties = {value.path.rpartition(".")[2]: _property(value) for value in inside}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _property(value: Value) -> dict[str, Any]:
    described = {"description": value.description} if value.description else {}
    if value.is_closed:
        return {**described, **_closed(value.inside)}
    return {**described, "type": _TYPES[type(value.default)], **value.hints}


if __name__ == "__main__":
    sys.exit(main())
