"""The Asset: a thing that people share, and the objects that stand for it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from assetlock.model.base import Duration, Model, Time, Username, rules
from assetlock.model.conditions import Conditions
from assetlock.model.meta import ObjectMeta


class Target(Model):
    """A real object that is fenced while the asset is locked."""

    api_version: str = Field(
        min_length=1, max_length=317, description="Group and version, such as `apps/v1`; `v1` for the core."
    )
    kind: str = Field(min_length=1, max_length=63, description="Such as `Deployment`.")
    name: str = Field(min_length=1, max_length=253, description="The object's name.")
    namespace: str | None = Field(
        None,
        min_length=1,
        max_length=63,
        description="Default: the asset's own. Left out for cluster-scoped kinds.",
    )


class AssetSpec(Model):
    """What is to be locked, and for how long at most."""

    type: str = Field("", max_length=63, description="What sort of thing it is, such as `VM`; for filters.")
    display_name: str | None = Field(None, max_length=253, description="A name for people.")
    description: str | None = Field(None, max_length=4096, description="What people should know about it.")
    metadata: dict[str, Any] = Field(
        default_factory=dict,
        description="Anything to keep with the asset; never read by the operator.",
        json_schema_extra={"x-kubernetes-preserve-unknown-fields": True},
    )
    targets: list[Target] = Field(
        default_factory=list,
        max_length=64,
        description="The objects that nobody but the holder may change while the asset is locked.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    default_ttl: Duration | None = Field(
        None,
        alias="defaultTTL",
        description="How long a lock lasts that does not say. Default: the operator's.",
    )
    max_ttl: Duration | None = Field(
        None,
        alias="maxTTL",
        description="The longest that a lock may last without being renewed; longer ones are clipped.",
    )
    exempt: list[Username] = Field(
        default_factory=list,
        max_length=32,
        description="Usernames of controllers that own the targets and may go on updating, but not deleting, them.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )


class Holder(Model):
    """Who holds the lock. Policies inside the API server read this: it is the Asset's own stamp."""

    lock: str | None = Field(None, max_length=253, description="The AssetLock; none for a hand-made Lease.")
    mode: str = Field("Exclusive", max_length=32, description="How it is held.")
    identity: Username = Field(description="The authenticated username.")
    pod_name: str | None = Field(None, max_length=253, description="The pod that asked, if one did.")
    pod_uid: str | None = Field(
        None, alias="podUID", max_length=64, description="Only this very pod may write, where it is set."
    )
    fencing_token: int = Field(
        ge=0, description="Grows with every acquisition of the asset.", json_schema_extra={"format": "int64"}
    )
    acquisition: str = Field(max_length=512, description="The id of this acquisition.")
    acquire_time: Time | None = Field(None, description="Since when.")
    expire_time: Time | None = Field(None, description="Until when, unless renewed.")
    reason: str | None = Field(None, max_length=1024, description="What the holder said it is for.")
    holder_id: str | None = Field(
        None, max_length=253, description="The caller's own id: a build, an execution."
    )


class QueueEntry(Model):
    """One who waits."""

    lock: str = Field(max_length=253, description="The AssetLock.")
    identity: Username = Field(description="Who asked.")
    priority: int = Field(0, description="Higher goes first.", json_schema_extra={"format": "int32"})
    since: Time | None = Field(None, description="When it was created.")


class AssetStatus(Model):
    """Derived from Leases and AssetLocks, but for the token's high-water mark."""

    lock_state: Literal["Unlocked", "Locked", "Maintenance"] = Field(
        "Unlocked", description="A summary, for columns and selectors."
    )
    holders: list[Holder] = Field(
        default_factory=list,
        max_length=1024,
        description="Who holds the asset.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    queue: list[QueueEntry] = Field(
        default_factory=list,
        max_length=10,
        description="The first ten who wait, the next one first.",
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    )
    queue_length: int = Field(
        0, ge=0, description="How many wait in all.", json_schema_extra={"format": "int32"}
    )
    fencing_token: int = Field(
        0,
        ge=0,
        description="The highest token ever given out for this asset.",
        json_schema_extra={"format": "int64"},
    )
    last_patched_by: str | None = Field(
        None, max_length=1024, description="The holder who last wrote to a target."
    )
    last_patch_time: Time | None = Field(None, description="When that was.")
    conditions: Conditions = Field(default_factory=list, description="`Ready` and `Fenced`.")
    observed_generation: int | None = Field(
        None,
        ge=0,
        description="The generation that the status was made from.",
        json_schema_extra={"format": "int64"},
    )


_STATUS_RULES = rules(
    (
        "!has(oldSelf.fencingToken) || (has(self.fencingToken) && self.fencingToken >= oldSelf.fencingToken)",
        "fencingToken never falls: a lower one would let a former holder write again",
    ),
)


class Asset(Model):
    """A thing that people share: a VM, a database, a Deployment, or several objects that go together."""

    metadata: ObjectMeta
    spec: AssetSpec = Field(default_factory=AssetSpec, description="What is to be locked.")
    status: Annotated[AssetStatus, _STATUS_RULES] = Field(
        default_factory=AssetStatus, description="Who holds it and who waits."
    )
