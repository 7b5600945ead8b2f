"""Read an asset, record on it what was done to it, and check whether a fencing token is current."""

from __future__ import annotations

import dataclasses
from typing import Any

from assetlock.kube.api import Api
from assetlock.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from assetlock.kube.resources import ASSETS
from assetlock.model.asset import Asset, Holder

TRIES = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Verification:
    """Whether a token is current, and what the asset's tokens are. ``holder`` is whose the token is, if it is."""

    token: int
    holder: Holder | None
    mark: int

    @property
    def current(self) -> bool:
        """Whether the holder with this token still holds the lock."""
        return self.holder is not None


async def read(api: Api, namespace: str, name: str) -> Asset:
    """The asset as it is now; raises `NotFound`."""
    return Asset.model_validate(await api.get(ASSETS, namespace, name))


async def verify(api: Api, namespace: str, name: str, token: int) -> Verification:
    """Whether somebody holds the asset with this token, read live."""
    status = (await read(api, namespace, name)).status
    holder = next((holder for holder in status.holders if holder.fencing_token == token), None)
    return Verification(token, holder, status.fencing_token)


async def record(api: Api, namespace: str, name: str, spec: dict[str, Any]) -> tuple[Asset, bool]:
    """Have the asset's spec say this, and leave its other fields alone; whether the asset was created.

    Raises `Locked` while others hold it: a record is a write to the asset like any other.
    """
    for _ in range(TRIES):
        try:
            present = await api.get(ASSETS, namespace, name)
        except NotFound:
            body = {
                "apiVersion": ASSETS.api_version,
                "kind": ASSETS.kind,
                "metadata": {"name": name},
                "spec": spec,
            }
            try:
                return Asset.model_validate(await api.create(ASSETS, namespace, body)), True
            except AlreadyExists:
                continue
        meta = present["metadata"]
        patch = {
            "metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
            "spec": _replacing(present.get("spec", {}), spec),
        }
        try:
            return Asset.model_validate(await api.merge_patch(ASSETS, namespace, name, patch)), False
        except Conflict:
            continue
    raise KubeError(f"Asset {name} changes all the time; try again")


def _replacing(present: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """A merge patch after which the wanted fields are as given, those of free metadata that are left out gone."""
    patch = dict(wanted)
    if isinstance(wanted.get("metadata"), dict):
        dropped = present.get("metadata", {}).keys() - wanted["metadata"].keys()
        patch["metadata"] = {**dict.fromkeys(dropped), **wanted["metadata"]}
    return patch
