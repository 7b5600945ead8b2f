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
    """What is to be locked, and for how long at most."""

    type: str = Field("", max_length=63, description="What kind of thing it is, such as VM or Database.")
    display_name: str | None = Field(None, max_length=253, description="Its name for people.")
    description: str | None = Field(None, max_length=4096, description="What people should know about it.")
    metadata: dict[str, Any] = Field(
        default_factory=dict, max_length=64, description="Anything you want to keep with it, as free JSON."
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
        description="What becomes of others' writes to locked targets. Reject: they are refused. Warn: an update "
        "succeeds, but nothing of it is written, and the client is warned; deletions are refused.",
    )
    capacity: int = Field(
        1,
        ge=1,
        le=MOST_SLOTS,
        description="How many may hold it at once: Shared locks and Leases made by hand take one slot each, "
        "Exclusive locks all of them.",
    )
    enforcement: Literal["Required", "Advisory"] = Field(
        "Required",
        description="Whether a lock may be had although the API server can't refuse others' writes to some target: "
        "with Advisory it may, and the condition Fenced says why it is only advice.",
    )
    default_ttl: PositiveDuration | None = Field(
        None,
        alias="defaultTTL",
        description="How long a lock lasts that does not say. Default: the operator's.",
    )
    max_ttl: PositiveDuration | None = Field(
        None,
        alias="maxTTL",
        description="The longest that a lock may last at a time. Default: the operator's.",
    )
    max_hold: PositiveDuration | None = Field(
        None,
        description="The longest that one may hold it in all, however often it is renewed. Default: no end.",
    )
    lock_delay: PositiveDuration | None = Field(
        None,
        description="How long nobody gets it, and nobody may write, after a lock has expired or was revoked, or "
        "ended as its pod failed. Default: not at all.",
    )
    exempt: list[Username] = Field(
        default_factory=list,
        max_length=32,
        description="Users that may update the targets while others hold the lock, such as a controller that "
        "has to finish what a holder began. They may not delete.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    guarded_subresources: list[Literal["exec", "attach", "portforward"]] = Field(
        default_factory=list,
        max_length=3,
        description="Ways into pods that are closed to others too while the asset is locked. Scaling, eviction, "
        "resizing and debug containers always are.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )


class Holder(Model):
    """Who holds the lock. Policies inside the API server read this."""

    lock: str | None = Field(
        None, max_length=253, description="The AssetLock; none for a Lease made by hand."
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
    acquire_time: Time | None = Field(None, description="Since when.")
    expire_time: Time | None = Field(None, description="Until when, if it is not extended.")
    doubt: str | None = Field(
        None, max_length=1024, description="Why nobody can tell whether the holder's pod still lives."
    )
    reason: str | None = Field(None, max_length=1024, description="What for.")
    maintainers: list[Subject] | None = Field(
        None, max_length=32, description="With Maintenance, who may write meanwhile."
    )
    holder_id: str | None = Field(None, max_length=253, description="What the holder calls itself.")


class QueueEntry(Model):
    """One who waits."""

    lock: str = Field(max_length=253, description="The AssetLock.")
    identity: str = Field(max_length=1024, description="Who it is for.")
    priority: int = Field(0, ge=-1000, le=1000, description="Its priority.")
    since: Time | None = Field(None, description="Since when it waits.")


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
    time: Time = Field(description="When; the last time, if it was done more than once.")
    operation: Literal["UPDATE", "DELETE"] = Field(description="What was done.")
    kind: str = Field(max_length=63, description="The kind of object that it was done to.")
    name: str = Field(max_length=253, description="The object's name.")
    namespace: str | None = Field(None, max_length=63, description="The object's namespace, if it has one.")


class AssetStatus(Model):
    """What is seen of it. Derived from Leases and AssetLocks, but for the token's high-water mark."""

    lock_state: Literal["Unlocked", "Locked", "Maintenance"] = Field("Unlocked", description="In a word.")
    holders: list[Holder] = Field(default_factory=list, max_length=MOST_SLOTS, description="Who holds it.")
    queue: list[QueueEntry] = Field(default_factory=list, max_length=64, description="Who is next, in order.")
    queue_length: int = Field(0, ge=0, description="How many wait, also those that the queue does not show.")
    fencing_token: int = Field(0, ge=0, description="The highest token given so far. It never goes down.")
    fenced_targets: int = Field(
        0, ge=0, description="How many objects are fenced; none while nobody holds the lock."
    )
    fenced_places: list[FencedPlace] = Field(
        default_factory=list,
        max_length=MOST_PLACES,
        description="Where its stamps may be, since it was last locked: the targets' places, and those of what it "
        "named earlier.",
    )
    last_patched_by: str | None = Field(None, max_length=1024, description="The last holder that wrote.")
    last_patch_time: Time | None = Field(None, description="When that was.")
    broken_glass: list[BrokenGlass] = Field(
        default_factory=list,
        max_length=10,
        description="What was written through the lock by break-glass in the last hour, the latest first.",
    )
    conditions: Conditions = Field(
        default_factory=list,
        description="Ready: locks are granted. Fenced: targets can be. "
        "Overcommitted: a Lease made by hand holds nothing, as there is no room for it.",
    )
    observed_generation: int | None = Field(None, ge=0, description="The generation that this was made from.")


class Asset(Model):
    """A thing that people share: whoever holds its lock is the only one who may write its targets."""

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
