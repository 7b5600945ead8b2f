"""Stamps of ended locks that the controller can't take off: noted on the policy, which ignores them too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from assetlock.admission.rules.targets import Claim
from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.reflector import Reflector
from assetlock.kube.resources import POLICIES


class EndedStamps:
    """What is noted, once ``reflector`` runs."""

    def __init__(self, api: Api) -> None:
        self._noted: Mapping[str, str] = {}
        self.reflector = Reflector(
            api,
            POLICIES,
            field_selector=f"metadata.name={names.TARGETS_POLICY}",
            metadata_only=True,
            on_replace=lambda items, _: self._take_in(items[0] if items else None),
            on_event=lambda kind, raw: self._take_in(None if kind == "DELETED" else raw),
        )

    def without(self, claims: Iterable[Claim]) -> tuple[Claim, ...]:
        """The claims that mean something."""
        return tuple(claim for claim in claims if not self._is_noted(claim))

    def _is_noted(self, claim: Claim) -> bool:
        uid = claim.text.partition("\n")[0]
        return self._noted.get(names.ended_key(claim.key, uid)) == claim.text

    def _take_in(self, policy: dict[str, Any] | None) -> None:
        self._noted = (policy or {}).get("metadata", {}).get("annotations") or {}
