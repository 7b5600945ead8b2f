"""Stamps of ended locks that can't be taken off, as another policy, a schema or RBAC is in the way.

Such a stamp would stand against everybody but the former holder for as long. So it is noted, word for word, on the
policy that reads stamps, for this key on this object: that policy then takes it for nothing. No later stamp reads
the same, since tokens only grow, and nobody may write the note who could not delete the policy as well.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.errors import Conflict, KubeError
from assetlock.kube.resources import POLICIES

TRIES = 5

log = logging.getLogger(__name__)


class EndedStamps:
    """Keeps the notes: made when a stamp can't be taken off, and removed when it is gone."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._noted: dict[str, str] = {}

    async def note(self, stamp_key: str, uid: str, text: str) -> None:
        """Have the policy take this stamp on this object for nothing; what can't be written now is tried again."""
        self._noted[names.ended_key(stamp_key, uid)] = text
        await self._write({names.ended_key(stamp_key, uid): text})

    async def sweep(self, stamps: Collection[tuple[str, str, str]]) -> None:
        """Remove the notes of stamps that are gone. ``stamps``: all that are known, by key, UID and text."""
        there = {(names.ended_key(key, uid), text) for key, uid, text in stamps}
        gone = [key for key, text in self._noted.items() if (key, text) not in there]
        if gone and await self._write(dict.fromkeys(gone)):
            for key in gone:
                del self._noted[key]

    async def _write(self, wanted: Mapping[str, str | None]) -> bool:
        try:
            for _ in range(TRIES):
                try:
                    return await self._patch(wanted)
                except Conflict:
                    continue
        except KubeError as error:
            log.warning("could not note ended stamps on the policy", extra={"why": str(error)})
        return False

    async def _patch(self, wanted: Mapping[str, str | None]) -> bool:
        policy = await self._api.get(POLICIES, None, names.TARGETS_POLICY, metadata_only=True)
        meta: dict[str, Any] = policy["metadata"]
        present = meta.get("annotations") or {}
        changes = {key: text for key, text in wanted.items() if present.get(key) != text}
        if changes:
            patch = {"metadata": {"resourceVersion": meta["resourceVersion"], "annotations": changes}}
            await self._api.merge_patch(POLICIES, None, names.TARGETS_POLICY, patch)
        return True
