"""The AssetLock: one acquisition of one asset, from asking to its end."""

from __future__ import annotations

import enum
from typing import Literal

from pydantic import Field

from assetlock.model.base import Model, Time
from assetlock.model.conditions import Condition
from assetlock.model.meta import ObjectMeta


class LockHolder(Model):
    """Who a lock is for, as authenticated."""

    username: str
    pod_name: str | None = None
    pod_uid: str | None = Field(None, alias="podUID")


class AssetLockSpec(Model):
    """What is asked for."""

    asset_name: str
    mode: Literal["Exclusive"] = "Exclusive"
    ttl: str | None = None
    wait: str = "0s"
    priority: int = 0
    holder: LockHolder | None = None
    holder_id: str | None = None
    bind_to: Literal["User", "Pod"] = "User"
    extend_on_write: bool = True
    reason: str | None = None
    ttl_seconds_after_finished: int | None = None


class LockState(enum.StrEnum):
    """Where a lock is in its life."""

    PENDING = "Pending"
    HELD = "Held"
    RELEASED = "Released"
    EXPIRED = "Expired"
    REVOKED = "Revoked"
    FAILED = "Failed"
    QUARANTINED = "Quarantined"

    @property
    def terminal(self) -> bool:
        """Whether nothing follows."""
        return self not in (LockState.PENDING, LockState.HELD)


class AssetLockStatus(Model):
    """What became of it."""

    state: LockState | None = None
    queue_position: int | None = None
    acquire_time: Time | None = None
    expire_time: Time | None = None
    fencing_token: int | None = None
    finish_time: Time | None = None
    conditions: list[Condition] = Field(default_factory=list)
    observed_generation: int | None = None


class AssetLock(Model):
    """One lock."""

    metadata: ObjectMeta
    spec: AssetLockSpec
    status: AssetLockStatus = Field(default_factory=AssetLockStatus)
