"""The Asset: a thing that people share, and the objects that stand for it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from assetlock.model import cel
from assetlock.model.base import Model, ObjectName, PositiveDuration, Time, Username
from assetlock.model.conditions import Conditions
from assetlock.model.limits import MOST_SLOTS
from assetlock.model.meta import ObjectMeta
from assetlock.model.selector import LabelSelector
from assetlock.model.subject import Subject

MOST_SELECTED = 500
"""So many objects one selector may select; each is a write at the beginning of a lock and one at its end."""

MOST_PLACES = 256
"""So many are kept in an Asset's status; of more, only those that are needed still."""


class Target(Model):
    """A real object, or all objects that a selector selects, to be fenced while the asset is locked."""

    model_config = ConfigDict(
        json_schema_extra=cel.rules(
            cel.rule("has(self.name) != has(self.selector)", "a target has either a name or a selector")
        )
    )

    api_version: str = Field(
        min_length=1,
        max_length=317,
        description="Its API's group and version, such as apps/v1; v1 for the core.",
        json_schema_extra=cel.matches(
            "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9][a-z0-9]*$",
            "an apiVersion is a group and a version, such as apps/v1, or v1 for the core",
        ),
    )
    kind: str = Field(
        min_length=1,
        max_length=63,
        description="Its kind, such as Deployment.",
        json_schema_extra=cel.matches(
            "^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$", "a kind is one word, such as Deployment"
        ),
    )
    name: ObjectName | None = Field(
        None,
        description="Its name.",
        json_schema_extra=cel.rules(
            cel.rule(
                "!self.contains('/') && !self.contains('%') && self != '.' && self != '..'",
                "a name has no / and no %, and is not . or ..",
            )
        ),
    )
    selector: LabelSelector | None = Field(
        None,
        description="Instead of a name: the labels of the objects, as they are at each moment. At most "
        f"{MOST_SELECTED} are fenced; while more are selected, the lock is not granted.",
    )
    namespace: str | None = Field(
        None,
        max_length=63,
        description="Its namespace, if it is not the Asset's own. Cluster-wide kinds have none.",
        json_schema_extra=cel.matches(cel.DNS_LABEL, "a namespace is a DNS label: a-z, 0-9 and -"),
    )


class AssetSpec(Model):
    """What is locked, and how."""

    type: str = Field("", max_length=63, description="What the asset is, such as VM or Database.")
    display_name: str | None = Field(None, max_length=253, description="A name for people.")
    description: str | None = Field(
        None, max_length=4096, description="What people should know about the asset."
    )
    metadata: dict[str, Any] = Field(
        default_factory=dict, max_length=64, description="Any further data, as free JSON."
    )
    targets: list[Target] = Field(
        default_factory=list,
        max_length=64,
        description="The objects that only the lock's holder may write. They need not exist yet.",
        json_schema_extra=cel.rules(
            cel.rule_on_change(
                "self.all(one, self.exists_one(other, other == one))", "each object is named only once"
            )
        ),
    )
    on_conflict: Literal["Reject", "Warn"] = Field(
        "Reject",
        description="What happens to others' writes to locked targets. Reject (default): they are refused. Warn: an "
        "update succeeds, but nothing of it is written, and the client is warned; deletions are refused.",
    )
    capacity: int = Field(
        1,
        ge=1,
        le=MOST_SLOTS,
        description="How many may hold the asset at once: a Shared lock, or a Lease without AssetLock, takes one "
        "slot, "
        "an Exclusive lock all of them. Default: 1.",
    )
    enforcement: Literal["Required", "Advisory"] = Field(
        "Required",
        description="Required (default): the asset can't be locked while the API server can't refuse others' "
        "writes to one "
        "of its targets. Advisory: it can, and the condition Fenced says what is not protected.",
    )
    default_ttl: PositiveDuration | None = Field(
        None,
        alias="defaultTTL",
        description="The TTL of locks that set none, such as 30m. Default: the operator's.",
    )
    max_ttl: PositiveDuration | None = Field(
        None,
        alias="maxTTL",
        description="The longest TTL; longer ones are clipped. Default: the operator's.",
    )
    max_hold: PositiveDuration | None = Field(
        None,
        description="The longest time that a lock may be held, however often it is renewed. Default: no limit.",
    )
    lock_delay: PositiveDuration | None = Field(
        None,
        description="How long nobody gets the asset, and nobody may write, after a lock has expired, was "
        "revoked, or its pod "
        "has failed. Default: 0s.",
    )
    exempt: list[Username] = Field(
        default_factory=list,
        max_length=32,
        description="Users that may update the targets while others hold the lock, such as a controller that "
        "has to finish what a holder began. They may not delete.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    guarded_subresources: list[Literal["exec", "attach", "portforward", "proxy"]] = Field(
        default_factory=list,
        max_length=4,
        description="Subresources of pods that are refused to others too while the asset is locked. Scaling, "
        "eviction, "
        "resizing and debug containers always are.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )


class Holder(Model):
    """A holder of the lock. Policies inside the API server read this."""

    lock: str | None = Field(
        None, max_length=253, description="The AssetLock; absent for a Lease without one."
    )
    mode: str = Field("Exclusive", max_length=63, description="The lock's mode.")
    identity: str = Field(max_length=1024, description="Who may write, as authenticated.")
    pod_name: str | None = Field(None, max_length=253, description="The holder's pod.")
    pod_uid: str | None = Field(
        None, alias="podUID", max_length=64, description="The only pod that may write, if it is bound to one."
    )
    credential_id: str | None = Field(
        None,
        alias="credentialId",
        max_length=256,
        description="The only token or certificate that may write, if it is bound to one.",
    )
    slots: list[int] = Field(
        default_factory=lambda: [0], max_length=MOST_SLOTS, description="Which of the asset's slots it takes."
    )
    fencing_token: int = Field(ge=0, description="The number of this acquisition; later ones are higher.")
    acquisition: str = Field(max_length=512, description="The id of this acquisition.")
    acquire_time: Time | None = Field(None, description="When the lock was granted.")
    expire_time: Time | None = Field(None, description="When the lock ends, if it is not renewed.")
    doubt: str | None = Field(
        None, max_length=1024, description="Why nobody can tell whether the holder's pod still lives."
    )
    reason: str | None = Field(None, max_length=1024, description="Why the asset is locked.")
    maintainers: list[Subject] | None = Field(
        None, max_length=32, description="With Maintenance, who may write meanwhile."
    )
    holder_id: str | None = Field(None, max_length=253, description="The holder's own name for the run.")


class QueueEntry(Model):
    """A waiter."""

    lock: str = Field(max_length=253, description="The AssetLock.")
    identity: str = Field(max_length=1024, description="Who it is for.")
    priority: int = Field(0, ge=-1000, le=1000, description="Its priority.")
    since: Time | None = Field(None, description="When the AssetLock was created.")


class FencedPlace(Model):
    """Where objects of one kind are."""

    api_version: str = Field(max_length=317, description="The kind's API group and version.")
    kind: str = Field(max_length=63, description="The kind of object.")
    namespace: str | None = Field(
        None, max_length=63, description="The namespace; none for cluster-wide kinds."
    )


class BrokenGlass(Model):
    """A write that went through the lock by the group assetlock:break-glass."""

    identity: str = Field(max_length=1024, description="Who wrote, as authenticated.")
    time: Time = Field(description="When it was written, the last time.")
    operation: Literal["UPDATE", "DELETE"] = Field(description="What was done.")
    kind: str = Field(max_length=63, description="The kind of object that it was done to.")
    name: str = Field(max_length=253, description="The object's name.")
    namespace: str | None = Field(None, max_length=63, description="The object's namespace, if it has one.")


class AssetStatus(Model):
    """The observed state. Derived from Leases and AssetLocks, except for the fencing token."""

    lock_state: Literal["Unlocked", "Locked", "Maintenance"] = Field("Unlocked", description="Current state.")
    held_by: str | None = Field(None, max_length=253, description="The holders, in short.")
    slots: str | None = Field(
        None,
        max_length=63,
        description="How many of its slots are taken, such as 1/3; not with a capacity of 1.",
    )
    holders: list[Holder] = Field(default_factory=list, max_length=MOST_SLOTS, description="The holders.")
    queue: list[QueueEntry] = Field(
        default_factory=list, max_length=64, description="The next waiters, in order."
    )
    queue_length: int = Field(0, ge=0, description="How many wait, including those not listed in queue.")
    fencing_token: int = Field(
        0, ge=0, description="The highest fencing token so far. It never decreases while the Asset exists."
    )
    fenced_targets: int = Field(
        0, ge=0, description="How many objects are fenced; 0 while nobody holds the lock."
    )
    fenced_places: list[FencedPlace] = Field(
        default_factory=list,
        max_length=MOST_PLACES,
        description="Where stamps of the asset may be since it was last locked: the places of its present and former "
        "targets.",
    )
    last_patched_by: str | None = Field(
        None, max_length=1024, description="The holder that wrote to a target last."
    )
    last_patch_time: Time | None = Field(None, description="When lastPatchedBy wrote.")
    broken_glass: list[BrokenGlass] = Field(
        default_factory=list,
        max_length=10,
        description="Break-glass writes in the last hour, the latest first.",
    )
    conditions: Conditions = Field(
        default_factory=list,
        description="Ready: it accepts locks. Fenced: all targets exist and are fenced when it is locked. "
        "Overcommitted: a Lease beyond the capacity holds nothing.",
    )
    observed_generation: int | None = Field(None, ge=0, description="The generation that this was made from.")


class Asset(Model):
    """Something that people share: only the holder of its lock may write its targets."""

    model_config = ConfigDict(
        json_schema_extra=cel.rules(
            cel.asset_name("self.metadata.name", field="metadata.name"),
            cel.rule(
                "!has(oldSelf.status) || !has(oldSelf.status.fencingToken) || (has(self.status) && "
                "has(self.status.fencingToken) && self.status.fencingToken >= oldSelf.status.fencingToken)",
                "a fencing token never goes down",
                field="status.fencingToken",
            ),
        )
    )

    metadata: ObjectMeta
    spec: AssetSpec = Field(default_factory=AssetSpec)
    status: AssetStatus = Field(default_factory=AssetStatus)
