"""The AssetLock: one acquisition of one asset, from asking to its end."""

from __future__ import annotations

import enum
from typing import Annotated, Literal

from pydantic import Field

from assetlock.model.base import Duration, Model, Time, Username, WaitDuration, rules
from assetlock.model.conditions import Conditions
from assetlock.model.meta import ObjectMeta


class LockHolder(Model):
    """Who a lock is for. Stamped from the authenticated requester; naming somebody else needs `delegate`."""

    username: Username = Field(description="The authenticated username.")
    pod_name: str | None = Field(None, max_length=253, description="The pod that the token was bound to.")
    pod_uid: str | None = Field(None, alias="podUID", max_length=64, description="That pod's UID.")


class AssetLockSpec(Model):
    """What is asked for. Immutable but for `ttl`, `reason` and `priority`."""

    asset_name: Annotated[
        str,
        Field(max_length=253),
        rules(
            (
                "size(self) <= 63 && self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
                "an asset's name is a DNS label: lower case letters, digits and '-', at most 63 characters",
            )
        ),
    ] = Field(description="The asset, in the same namespace.")
    mode: Literal["Exclusive"] = Field("Exclusive", description="`Exclusive`: the whole asset.")
    ttl: Duration | None = Field(
        None,
        description="How long the lock lasts without being renewed. Default: the asset's, else the operator's.",
    )
    wait: WaitDuration = Field(
        "0s", description="How long to queue; zero fails at once when the asset is held."
    )
    priority: int = Field(
        0,
        ge=-1000,
        le=1000,
        description="Higher goes first; among equals the older.",
        json_schema_extra={"format": "int32"},
    )
    holder: LockHolder | None = Field(None, description="Whom the lock is for.")
    holder_id: str | None = Field(
        None, max_length=253, description="An id of the caller's own, shown everywhere; never an identity."
    )
    bind_to: Literal["User", "Pod"] = Field(
        "User",
        description="`User`: whoever is authenticated as that user may write. `Pod`: only that very pod.",
    )
    extend_on_write: bool = Field(
        True, description="Whether each admitted write by the holder renews the lock."
    )
    reason: str | None = Field(
        None, max_length=1024, description="What for; shown to everybody who is turned away."
    )
    ttl_seconds_after_finished: int | None = Field(
        None,
        ge=0,
        description="Delete this object so many seconds after its end.",
        json_schema_extra={"format": "int32"},
    )


class LockState(enum.StrEnum):
    """Where a lock is in its life. All but the first two are final."""

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

    state: LockState | None = Field(None, description="A summary, for columns and selectors.")
    queue_position: int | None = Field(
        None,
        ge=1,
        description="The place in the queue: exact for the first ten.",
        json_schema_extra={"format": "int32"},
    )
    acquire_time: Time | None = Field(None, description="Since when it is held.")
    expire_time: Time | None = Field(None, description="Until when, unless renewed.")
    fencing_token: int | None = Field(
        None,
        ge=0,
        description="Grows with every acquisition of the asset.",
        json_schema_extra={"format": "int64"},
    )
    finish_time: Time | None = Field(None, description="When it ended.")
    conditions: Conditions = Field(
        default_factory=list, description="`Acquired`, `Finished`, and `Settled` (held, or ended)."
    )
    observed_generation: int | None = Field(
        None,
        ge=0,
        description="The generation that the status was made from.",
        json_schema_extra={"format": "int64"},
    )


_SPEC_RULES = rules(
    *(
        (
            f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})",
            f"{field} can't be changed; only ttl, reason and priority can: make a new AssetLock",
        )
        for field in ("assetName", "mode", "wait", "holder", "holderId", "bindTo", "extendOnWrite")
    )
)
_STATUS_RULES = rules(
    (
        "!has(oldSelf.state) || oldSelf.state in ['Pending', 'Held'] || (has(self.state) && self.state == oldSelf.state)",
        "a lock that has ended stays as it ended",
    ),
)


class AssetLock(Model):
    """One acquisition of an asset: asks for it, waits, holds it, and shows how it ended. Deleting it releases."""

    metadata: ObjectMeta
    spec: Annotated[AssetLockSpec, _SPEC_RULES] = Field(description="What is asked for.")
    status: Annotated[AssetLockStatus, _STATUS_RULES] = Field(
        default_factory=AssetLockStatus, description="What became of it."
    )
