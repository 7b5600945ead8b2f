"""What is generated is current, and has what Kubernetes asks of a schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assetlock.model import generate
from assetlock.model.crds import KINDS, Kind, definition

ROOT = Path(__file__).parents[2]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.plural)


def schema_of(kind: Kind) -> dict[str, Any]:
    schema = definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert isinstance(schema, dict)
    return schema


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from fields(field, f"{path}.{name}")
    if "items" in schema:
        yield from fields(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from fields(schema["additionalProperties"], f"{path}[]")


def test_generated_files_are_what_the_models_say() -> None:
    assert generate.outdated(ROOT) == [], "run: python -m assetlock.model.generate"


def test_checking_names_what_is_outdated_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate.main(["--check", "--root", str(tmp_path)]) == 1
    assert "crds/assets.yaml is outdated" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_generating_makes_a_check_succeed(tmp_path: Path) -> None:
    assert generate.main(["--root", str(tmp_path)]) == 0
    assert generate.main(["--check", "--root", str(tmp_path)]) == 0


@each_kind
def test_every_string_and_every_list_has_a_limit(kind: Kind) -> None:
    unlimited = [
        path
        for path, field in fields(schema_of(kind))
        if (field["type"] == "array" and "maxItems" not in field)
        or (field["type"] == "string" and not {"maxLength", "enum", "format"} & field.keys())
    ]
    assert unlimited == [".apiVersion", ".kind", ".metadata.name"]


@each_kind
def test_every_field_of_ours_says_what_it_is_for(kind: Kind) -> None:
    silent = [
        path
        for path, field in fields(schema_of(kind))
        if path.startswith((".spec", ".status")) and "description" not in field and not path.endswith("[]")
    ]
    assert silent == []


@each_kind
def test_a_schema_is_structural(kind: Kind) -> None:
    foreign = {"$ref", "$defs", "anyOf", "const", "title", "exclusiveMinimum"}
    assert [path for path, field in fields(schema_of(kind)) if foreign & field.keys()] == []


@each_kind
def test_a_status_is_by_default_that_of_no_generation_and_says_nothing_else(kind: Kind) -> None:
    status = schema_of(kind)["properties"]["status"]
    assert status["default"] == {"observedGeneration": 0}
    assert [path for path, field in fields(status) if path and "default" in field] == []
