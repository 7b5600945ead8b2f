"""Writes that can't be made for now: what was refused, failed, or has no answer yet, until it is tried again.

A decision leaves them out, and whatever may only come after them; what does not depend on them goes on.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple


class Subject(NamedTuple):
    """What a write is about. ``namespace`` is ``None`` for cluster-wide kinds."""

    kind: str
    namespace: str | None
    name: str

    def __str__(self) -> str:
        return f"{self.kind.rpartition(' ')[2]} {self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class Stuck:
    """Why, ready to be read; ``failed`` is false while there is only no answer yet."""

    why: str
    failed: bool = True


def target(api_version: str, kind: str, namespace: str | None, name: str | None) -> Subject:
    """A target, as the subject of a stamp."""
    return Subject(f"{api_version} {kind}", namespace, name or "")


def unseen(namespace: str, asset: str) -> Subject:
    """All targets of an asset, while it can't be seen what they are."""
    return Subject("targets of", namespace, asset)
