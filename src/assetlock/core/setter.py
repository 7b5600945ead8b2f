"""Who last set an asset's targets: recorded by admission, so that it can be asked later whether they still may.

A line with the username, then a line for each group, as both stood in that request. Groups that somebody has left
since are therefore still counted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from assetlock.core import names


@dataclasses.dataclass(frozen=True, slots=True)
class Setter:
    """An authenticated requester."""

    username: str
    groups: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([self.username, *self.groups])


def setter_of(annotations: Mapping[str, str]) -> Setter | None:
    """Whom an Asset's annotations name; ``None`` where they do not."""
    username, *groups = annotations.get(names.SETTER_ANNOTATION, "").split("\n")
    return Setter(username, tuple(groups)) if username else None
