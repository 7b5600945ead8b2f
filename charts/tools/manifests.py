"""Writes `manifests/` from the chart: ``python -m charts.tools.manifests [--check]``, or ``make manifests``.

Each template becomes one file of the same name, for those who install without Helm. With ``--check`` nothing is
written, and the exit code says whether all is current.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
from collections.abc import Sequence

from charts.tools import helm

FOLDER = helm.ROOT / "manifests"
VALUES = pathlib.Path(__file__).with_name("manifests-values.yaml")

_SOURCE = re.compile(r"^---\n# Source: assetlock/templates/(\S+)\n", re.MULTILINE)
_OF_A_RELEASE = re.compile(
    r"^ +(?:app\.kubernetes\.io/(?:instance|version|managed-by)|helm\.sh/chart): .*\n", re.MULTILINE
)
"""Labels that would claim that Helm looks after these objects."""


def rendered() -> dict[str, str]:
    """The manifests, by file name."""
    text = _OF_A_RELEASE.sub("", helm.template("--no-hooks", values=[VALUES]))
    files: dict[str, list[str]] = {}
    _, *parts = _SOURCE.split(text)
    for name, document in zip(parts[::2], parts[1::2], strict=True):
        files.setdefault(name, []).append(document.strip() + "\n")
    return {name: _header(name) + "---\n".join(documents) for name, documents in files.items()}


def _header(name: str) -> str:
    return f"# Rendered from charts/assetlock/templates/{name} by make manifests; do not edit.\n"


def outdated() -> list[str]:
    """The files in `manifests/` that are missing, stale, or differ from what the chart renders to."""
    wanted = rendered()
    present = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.yaml")}
    return sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))


def write(names: Sequence[str]) -> None:
    """Write these files, or remove those that no template renders any more."""
    wanted = rendered()
    for name in names:
        if name in wanted:
            (FOLDER / name).write_text(wanted[name], encoding="utf-8")
        else:
            (FOLDER / name).unlink()


def main() -> int:
    """Write what is outdated, or only name it."""
    parser = argparse.ArgumentParser(description="Write manifests/ from the chart.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if something is outdated")
    options = parser.parse_args()
    names = outdated()
    for name in names:
        print(f"manifests/{name} is outdated" if options.check else f"wrote manifests/{name}")
    if not options.check:
        write(names)
    return 1 if options.check and names else 0


if __name__ == "__main__":
    sys.exit(main())
