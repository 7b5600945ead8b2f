"""Write ``crds/`` and the reference page from the models: ``python -m assetlock.model.generate [--check]``.

Run in the repository's root. With ``--check`` nothing is written, and the exit code says whether all is current.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from assetlock.model.crds import KINDS, definition
from assetlock.model.reference import reference

HEADER = "# Generated from src/assetlock/model by python -m assetlock.model.generate; do not edit.\n"


def generated() -> dict[str, str]:
    """Every generated file, by its path in the repository."""
    files = {f"crds/{kind.plural}.yaml": HEADER + _as_yaml(definition(kind)) for kind in KINDS}
    return {**files, "docs/reference.md": reference()}


def outdated(root: Path) -> list[str]:
    """The generated files in ``root`` that are missing or differ from what the models say."""
    return [
        path
        for path, text in generated().items()
        if not (root / path).is_file() or (root / path).read_text(encoding="utf-8") != text
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write what is outdated, or only name it."""
    parser = argparse.ArgumentParser(description="Write crds/ and docs/reference.md from the models.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something is outdated")
    parser.add_argument("--root", type=Path, default=Path(), help="the repository (default: where you are)")
    options = parser.parse_args(arguments)
    paths = outdated(options.root)
    for path in paths:
        print(f"{path} is outdated" if options.check else f"wrote {path}")
        if not options.check:
            (options.root / path).parent.mkdir(parents=True, exist_ok=True)
            (options.root / path).write_text(generated()[path], encoding="utf-8")
    return 1 if options.check and paths else 0


def _as_yaml(document: object) -> str:
    return yaml.safe_dump(document, sort_keys=False, width=110, allow_unicode=True)


if __name__ == "__main__":
    sys.exit(main())
