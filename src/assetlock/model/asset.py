"""The Asset: a thing that people share, and the objects that stand for it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from assetlock.model.base import Model, Time
from assetlock.model.conditions import Condition
from assetlock.model.meta import ObjectMeta


class Target(Model):
    """A real object that is fenced while the asset is locked."""

    api_version: str = Field(max_length=317, description="Group and version, such as apps/v1.")
    kind: str = Field(max_length=63, description="Such as Deployment.")
    name: str = Field(max_length=253)
    namespace: str | None = Field(None, max_length=63, description="Default: the asset's own.")


class AssetSpec(Model):
    """What is to be locked, and for how long at most."""

    type: str = Field("", max_length=63, description="What kind of thing it is, such as VM or Database.")
    display_name: str | None = Field(None, max_length=253)
    description: str | None = Field(None, max_length=4096)
    metadata: dict[str, Any] = Field(default_factory=dict, description="Anything you like to keep with it.")
    targets: list[Target] = Field(default_factory=list, max_length=64)
    default_ttl: str | None = Field(None, alias="defaultTTL", max_length=64)
    max_ttl: str | None = Field(None, alias="maxTTL", max_length=64)
    exempt: list[str] = Field(default_factory=list, max_length=32)


class Holder(Model):
    """Who holds the lock. Policies inside the API server read this."""

    lock: str | None = None
    mode: str = "Exclusive"
    identity: str
    pod_name: str | None = None
    pod_uid: str | None = Field(None, alias="podUID")
    fencing_token: int
    acquisition: str
    acquire_time: Time | None = None
    expire_time: Time | None = None
    reason: str | None = None
    holder_id: str | None = None


class QueueEntry(Model):
    """One who waits."""

    lock: str
    identity: str
    priority: int = 0
    since: Time | None = None


class AssetStatus(Model):
    """Derived from Leases and AssetLocks, but for the token's high-water mark."""

    lock_state: Literal["Unlocked", "Locked", "Maintenance"] = "Unlocked"
    holders: list[Holder] = Field(default_factory=list)
    queue: list[QueueEntry] = Field(default_factory=list)
    queue_length: int = 0
    fencing_token: int = 0
    last_patched_by: str | None = None
    last_patch_time: Time | None = None
    conditions: list[Condition] = Field(default_factory=list)
    observed_generation: int | None = None


class Asset(Model):
    """One asset."""

    metadata: ObjectMeta
    spec: AssetSpec = Field(default_factory=AssetSpec)
    status: AssetStatus = Field(default_factory=AssetStatus)
