"""What goes in and out. Times are RFC 3339 in UTC, durations ISO 8601 (``PT30M``) or Kubernetes' (``30m``)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from assetlock.model.asset import Asset, Holder, QueueEntry
from assetlock.model.assetlock import AssetLock, LockState
from assetlock.model.base import Duration, PositiveDuration, Time
from assetlock.model.conditions import find_condition
from assetlock.model.selector import LabelSelector

NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
Name = Annotated[str, Field(max_length=253, pattern=NAME)]


class Body(BaseModel):
    """camelCase outside; a field that is not known is refused rather than ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class Terms(Body):
    """On what terms a lock is asked for."""

    ttl: PositiveDuration | None = Field(
        None, description="How long it lasts unless it is renewed.", examples=["PT2H"]
    )
    wait: Duration | None = Field(
        None, description="How long to queue. Default: not at all.", examples=["10m"]
    )
    mode: Literal["Exclusive", "Shared", "Maintenance"] = "Exclusive"
    reason: str | None = Field(None, max_length=1024, description="What for; shown to those who are refused.")
    priority: int = Field(0, ge=-1000, le=1000)
    bind_to: str | None = Field(None, max_length=63, description="Who may write: see bindTo of an AssetLock.")
    holder_id: str | None = Field(
        None,
        min_length=1,
        max_length=253,
        description="Your own name for the run: asked again with it, the lock is renewed.",
    )
    execution_id: str | None = Field(
        None, min_length=1, max_length=253, description="Another name for holderId."
    )
    flow_id: str | None = Field(None, max_length=253, description="Shown with the lock, never identity.")
    flow_namespace: str | None = Field(
        None, max_length=253, description="Shown with the lock, never identity."
    )
    task_run_id: str | None = Field(None, max_length=253, description="Shown with the lock, never identity.")

    @property
    def run(self) -> str | None:
        """What the caller calls the run."""
        return self.holder_id or self.execution_id

    def spec(self) -> dict[str, Any]:
        """As fields of an AssetLock's spec."""
        fields = self.model_dump(
            by_alias=True, exclude_none=True, include={"ttl", "wait", "mode", "reason", "priority", "bind_to"}
        )
        return {**fields, "holderId": self.run} if self.run else fields


class SeveralTerms(Terms):
    """Several assets by name, or any that a selector selects: all of them or none."""

    assets: list[Name] | None = Field(None, min_length=1, max_length=32)
    selector: LabelSelector | None = None
    count: int | None = Field(None, ge=1, le=32)


class Renewal(Body):
    """A new term for a lock that is held."""

    ttl: PositiveDuration | None = None


class TokenToVerify(Body):
    """A fencing token that somebody presents."""

    token: int = Field(ge=0, le=2**62)


class Record(Body):
    """What a caller records of an asset. Fields that are left out stay as they are."""

    type: str | None = Field(None, max_length=63, examples=["VM"])
    display_name: str | None = Field(None, max_length=253)
    description: str | None = Field(None, max_length=4096)
    metadata: dict[str, Any] | None = Field(None, max_length=64)

    def spec(self) -> dict[str, Any]:
        """As fields of an Asset's spec."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class Out(BaseModel):
    """camelCase outside."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class LockOut(Out):
    """A lock as its owner sees it."""

    lock_id: str
    namespace: str
    assets: list[str]
    state: LockState
    mode: str
    owner: str
    owner_type: Literal["USER", "WORKLOAD"]
    username: str
    holder_id: str | None = None
    reason: str | None = None
    acquired_at: Time | None = None
    locked_until: Time | None = None
    fencing_token: int | None = None
    fencing_tokens: dict[str, int] | None = None
    queue_position: int | None = None
    message: str = ""

    @classmethod
    def of(cls, lock: AssetLock) -> LockOut:
        """The lock as it is now."""
        spec, status, holder = lock.spec, lock.status, lock.spec.holder
        username = holder.username if holder else ""
        tokens = {one.name: one.fencing_token for one in status.assets or () if one.fencing_token is not None}
        names = [spec.asset_name] if spec.asset_name else [*tokens] or list(spec.asset_names or ())
        settled = find_condition(status.conditions, "Acquired") or find_condition(
            status.conditions, "Settled"
        )
        held = status.state is LockState.HELD
        return cls(
            lock_id=lock.metadata.name,
            namespace=lock.metadata.namespace or "",
            assets=names,
            state=status.state or LockState.PENDING,
            mode=spec.mode,
            owner=username,
            owner_type="WORKLOAD" if username.startswith("system:serviceaccount:") else "USER",
            username=username,
            holder_id=spec.holder_id,
            reason=spec.reason,
            acquired_at=status.acquire_time,
            locked_until=status.expire_time if held else None,
            fencing_token=status.fencing_token if held else None,
            fencing_tokens=tokens or None,
            queue_position=status.queue_position,
            message=settled.message if settled else "",
        )


class AssetOut(Out):
    """An asset, who holds it, and who waits."""

    namespace: str
    name: str
    id: str
    type: str
    display_name: str | None
    description: str | None
    metadata: dict[str, Any]
    lock_state: str
    lock: Holder | None
    locks: list[Holder]
    queue: list[QueueEntry]
    queue_length: int
    fencing_token: int
    last_patched_by: str | None
    last_patch_time: Time | None
    warnings: list[str] | None = None

    @classmethod
    def of(cls, asset: Asset, *, warnings: list[str] | None = None) -> AssetOut:
        """The asset as it is now."""
        meta, spec, status = asset.metadata, asset.spec, asset.status
        return cls(
            namespace=meta.namespace or "",
            name=meta.name,
            id=meta.name,
            type=spec.type,
            display_name=spec.display_name,
            description=spec.description,
            metadata=spec.metadata,
            lock_state=status.lock_state,
            lock=next(iter(status.holders), None),
            locks=status.holders,
            queue=status.queue,
            queue_length=status.queue_length,
            fencing_token=status.fencing_token,
            last_patched_by=status.last_patched_by,
            last_patch_time=status.last_patch_time,
            warnings=warnings,
        )


class AssetPage(Out):
    """One page of assets; ``next`` is the cursor of the page after it."""

    items: list[AssetOut]
    total: int
    next: str | None


class SearchPage(Out):
    """One numbered page of assets."""

    results: list[AssetOut]
    total: int


class VerificationOut(Out):
    """Whether a token is current."""

    current: bool
    token: int
    fencing_token: int
    holder: Holder | None
