"""The URL paths of the kinds that clients use. Names are quoted, so that an odd one can't reach another path."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass

from assetlock.core import names


@dataclass(frozen=True, slots=True)
class Resource:
    """A namespaced kind of object, as the API server serves it."""

    api_version: str
    plural: str
    kind: str

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The path of the collection (of one namespace, or of all), of an object, or of its subresource."""
        group = "apis" if "/" in self.api_version else "api"
        where = ["namespaces", _quoted(namespace)] if namespace else []
        rest = [_quoted(part) for part in (name, subresource) if part is not None]
        return "/".join(["", group, self.api_version, *where, self.plural, *rest])


def _quoted(part: str) -> str:
    if part in ("", ".", ".."):
        raise ValueError(f"{part!r} can't be part of an API path")
    return urllib.parse.quote(part, safe=":")


ASSETS = Resource(names.API_VERSION, "assets", "Asset")
ASSETLOCKS = Resource(names.API_VERSION, "assetlocks", "AssetLock")
LEASES = Resource("coordination.k8s.io/v1", "leases", "Lease")
