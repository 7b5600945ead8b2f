"""What the Dockerfile says."""

from __future__ import annotations

import json
import re

from charts.tools import helm

DOCKERFILE = helm.ROOT / "Dockerfile"


def entrypoint() -> list[str]:
    """What the image runs."""
    found = re.search(r"^ENTRYPOINT (\[.*\])$", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    command: list[str] = json.loads(found[1])
    return command
