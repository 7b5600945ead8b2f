"""Objects that the API server stores and our models refuse: an older definition, or a time that Python does not know.

They are passed over, so that each stands in its own way alone, and told of once a version.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from assetlock.core.decision import Event
from assetlock.core.messages import shortened

_Where = tuple[str, str, str]
"""Kind, namespace and name."""


class UnreadableObjects:
    """Knows which they are, and what is still to be told of them."""

    def __init__(self) -> None:
        self._versions: dict[_Where, int] = {}
        self._untold: list[tuple[str, Event]] = []

    def __contains__(self, where: _Where) -> bool:
        return where in self._versions

    def note(self, raw: dict[str, Any], error: ValidationError) -> None:
        """Take in a version that can't be read."""
        meta, where = raw["metadata"], _where(raw)
        version = int(meta["resourceVersion"])
        if version <= self._versions.get(where, -1):
            return
        self._versions[where] = version
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        note = (
            f"passed over, since {field} can't be read: {shortened(first['msg'])}; correct it, or delete it"
        )
        kind, namespace, name = where
        self._untold.append(
            (namespace, Event(kind, name, meta.get("uid", ""), "Unreadable", note, warning=True))
        )

    def forget(self, raw: dict[str, Any]) -> None:
        """Take in that the object can be read, or is gone."""
        if int(raw["metadata"]["resourceVersion"]) >= self._versions.get(where := _where(raw), -1):
            self._versions.pop(where, None)

    def keep(self, kind: str, raws: Iterable[dict[str, Any]], version: int) -> None:
        """Take in a whole list of a kind, as of ``version``: what it lacks is gone."""
        listed = {_where({**raw, "kind": kind}) for raw in raws}
        for where, known in list(self._versions.items()):
            if where[0] == kind and where not in listed and known <= version:
                del self._versions[where]

    def take_untold(self) -> list[tuple[str, Event]]:
        """The Events that are to be published, each with its namespace, and once."""
        taken, self._untold = self._untold, []
        return taken


def _where(raw: dict[str, Any]) -> _Where:
    meta = raw["metadata"]
    return raw["kind"], meta.get("namespace", ""), meta["name"]
