"""Write ``crds/``, their copy in the chart and the reference page from the models.

Run ``python -m assetlock.model.generate [--check]`` in the repository's root. With ``--check`` nothing is written,
and the exit code says whether all is current.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from assetlock.model.crds import KINDS, definition
from assetlock.model.reference import reference

HEADER = "# Generated from src/assetlock/model by python -m assetlock.model.generate; do not edit.\n"
_TEMPLATE = """\
{{- if .Values.crds.enabled }}
%(header)sapiVersion: %(apiVersion)s
kind: %(kind)s
metadata:
  name: %(name)s
  labels:
    {{- include "assetlock.labels" . | nindent 4 }}
  {{- if .Values.crds.keep }}
  annotations:
    helm.sh/resource-policy: keep
  {{- end }}
%(spec)s{{- end }}
"""


def generated() -> dict[str, str]:
    """Every generated file, by its path in the repository."""
    files = {f"crds/{kind.plural}.yaml": HEADER + _as_yaml(definition(kind)) for kind in KINDS}
    chart = {
        f"charts/assetlock/templates/crd-{kind.plural}.yaml": template(definition(kind)) for kind in KINDS
    }
    return {**files, **chart, "docs/reference.md": reference()}


def template(document: dict[str, Any]) -> str:
    """A definition as a template of the chart."""
    spec = _as_yaml({"spec": document["spec"]})
    if "{{" in spec:
        raise ValueError("a definition with {{ in it can't be a template as it is")
    name = document["metadata"]["name"]
    return _TEMPLATE % {**document, "header": HEADER, "name": name, "spec": spec}


def outdated(root: Path) -> list[str]:
    """The generated files in ``root`` that are missing or differ from what the models say."""
    return [
        path
        for path, text in generated().items()
        if not (root / path).is_file() or (root / path).read_text(encoding="utf-8") != text
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write what is outdated, or only name it."""
    parser = argparse.ArgumentParser(description="Write crds/, the chart's and docs/reference.md.")
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
