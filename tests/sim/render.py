"""How stored objects look in answers: whole or metadata only, alone or in lists."""

from dataclasses import dataclass
from typing import Any

from tests.sim.kinds import Served
from tests.sim.store import PARTIAL, Json, Version


@dataclass(frozen=True, slots=True)
class View:
    """One client's wish, from its Accept header."""

    served: Served
    metadata_only: bool

    @classmethod
    def accepted(cls, served: Served, accept: str) -> "View":
        """Read the header: the first form on offer decides."""
        first = accept.split(",")[0].replace(" ", "")
        return cls(served, "as=PartialObjectMetadata" in first)

    def one(self, obj: Json) -> Json:
        """A single object."""
        return PARTIAL | {"metadata": obj["metadata"]} if self.metadata_only else obj

    def body(self, version: Version) -> bytes:
        """A stored object as it goes over the wire."""
        return version.partial if self.metadata_only else version.body

    def many(self, objects: list[Json], metadata: dict[str, Any]) -> Json:
        """A list, with the real server's oddities.

        The items of built-in kinds don't say what they are, lists of custom ones always have a token, and metadata
        of nothing is null.
        """
        if self.metadata_only:
            kind = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            return kind | {"metadata": metadata, "items": [self.one(obj) for obj in objects] or None}
        if self.served.custom:
            metadata = {"continue": "", **metadata}
        else:
            objects = [
                {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}
                for obj in objects
            ]
        kind = {"kind": f"{self.served.kind}List", "apiVersion": self.served.api_version}
        return kind | {"metadata": metadata, "items": objects}

    def bookmark(self, revision: int) -> Json:
        """An object that carries nothing but how far a watch has come."""
        kind = (
            PARTIAL
            if self.metadata_only
            else {"kind": self.served.kind, "apiVersion": self.served.api_version}
        )
        return {**kind, "metadata": {"resourceVersion": str(revision)}}
