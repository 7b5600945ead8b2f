"""The table of questions in CONTRIBUTING.md points at what is there."""

from __future__ import annotations

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
PLACE = re.compile(r"`([a-z_/]+\.py):(\w+)`")


def test_each_question_is_answered_by_one_place_that_exists() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [
        line for line in page.splitlines() if line.startswith("| ") and line.count("|") == 3 and "?" in line
    ]
    assert len(rows) >= 20
    for row in rows:
        ((path, name),) = PLACE.findall(row)
        tree = ast.parse((ROOT / "src" / "assetlock" / path).read_text(encoding="utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        assert name in defined, row
