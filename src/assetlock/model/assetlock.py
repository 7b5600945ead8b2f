"""The AssetLock: one acquisition of one asset, or of several as one, from asking to its end."""

from __future__ import annotations

import enum
from typing import Literal

from pydantic import ConfigDict, Field

from assetlock.model import cel
from assetlock.model.base import (
    AssetName,
    CredentialID,
    Duration,
    MicroTime,
    Model,
    ObjectName,
    PodName,
    PodUID,
    PositiveDuration,
    Time,
    Username,
)
from assetlock.model.conditions import Conditions
from assetlock.model.meta import ObjectMeta
from assetlock.model.selector import LabelSelector
from assetlock.model.subject import Subject

MOST_TOGETHER = 32
"""The most assets in one AssetLock; each is written to when it begins and when it ends."""


_FIXED = "cannot be changed: only ttl, renewTime, reason and priority can; create another AssetLock instead"


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


class LockHolder(Model):
    """Who a lock is for, as authenticated."""

    model_config = ConfigDict(json_schema_extra=cel.immutable_but_for("credentialId", message=_FIXED))

    username: Username = Field(description="The user.")
    pod_name: PodName | None = Field(None, description="The pod that the user's token is bound to.")
    pod_uid: PodUID | None = Field(None, alias="podUID", description="That pod's UID.")
    credential_id: CredentialID | None = Field(
        None,
        alias="credentialId",
        description="With bindTo: Credential, the id of the user's token or certificate. With that one, and no "
        "other, you may replace it by the id of another.",
    )


class AssetLockSpec(Model):
    """The request. Only ttl, renewTime, reason and priority may be changed afterwards."""

    model_config = ConfigDict(
        json_schema_extra=cel.immutable_but_for(
            "ttl",
            "renewTime",
            "reason",
            "priority",
            "holder",
            message=_FIXED,
            also=(
                cel.rule(
                    "[has(self.assetName), has(self.assetNames), has(self.assetSelector)]"
                    ".filter(given, given).size() == 1",
                    "a lock names one asset in assetName, several in assetNames, or selects some with assetSelector",
                ),
                cel.rule(
                    "has(self.assetSelector) || !has(self.count)",
                    "how many are wanted goes with assetSelector",
                    field="count",
                ),
                cel.rule(
                    "has(self.assetName) || !has(self.takeOver)",
                    "one asset is taken over at a time, with assetName",
                    field="takeOver",
                ),
                cel.rule(
                    "has(self.assetName) || !has(self.whenHeld) || self.whenHeld != 'Revoke'",
                    "with several assets nobody is revoked before all of them can be had; lock them one by one, "
                    "or close them with a MaintenanceWindow",
                    field="whenHeld",
                ),
                cel.rule(
                    "self.bindTo != 'Pod' || (has(self.holder) && has(self.holder.podUID))",
                    "Pod needs a holder with a podUID, which is known when its token is bound to a pod",
                    field="bindTo",
                ),
                cel.rule(
                    "self.bindTo != 'Credential' || (has(self.holder) && has(self.holder.credentialId))",
                    "Credential needs a holder with a credentialId, which the API server gives to tokens of "
                    "ServiceAccounts and to client certificates",
                    field="bindTo",
                ),
                cel.rule(
                    "has(self.holder) == has(oldSelf.holder)",
                    _FIXED,
                    field="holder",
                ),
                cel.rule(
                    "self.bindTo == 'Credential' || !has(self.holder) || !has(self.holder.credentialId)",
                    "only a lock with bindTo: Credential has it",
                    field="holder.credentialId",
                ),
                cel.rule(
                    "self.mode == 'Maintenance' || !has(self.whenHeld)",
                    "only a lock with mode: Maintenance has it",
                    field="whenHeld",
                ),
                cel.rule(
                    "self.mode == 'Maintenance' || !has(self.maintainers) || self.maintainers.size() == 0",
                    "only a lock with mode: Maintenance has them",
                    field="maintainers",
                ),
                cel.rule(
                    "!has(self.releaseWithHolder) || !self.releaseWithHolder || "
                    "(has(self.holder) && has(self.holder.podUID))",
                    "true needs a holder with a podUID, which is known when its token is bound to a pod",
                    field="releaseWithHolder",
                ),
            ),
        )
    )

    asset_name: AssetName | None = Field(None, description="The Asset to lock, in the same namespace.")
    asset_names: list[AssetName] | None = Field(
        None,
        min_length=1,
        max_length=MOST_TOGETHER,
        description="Several Assets to lock together, in the same namespace: all of them or none.",
        json_schema_extra={"x-kubernetes-list-type": "set"},
    )
    asset_selector: LabelSelector | None = Field(
        None,
        description="Instead of names: any Assets in the same namespace that have these labels, as many as count "
        "says. status.assets lists those that were chosen.",
    )
    count: int | None = Field(
        None,
        ge=1,
        le=MOST_TOGETHER,
        description="How many of the selected Assets to lock together. Default: one.",
    )
    mode: Literal["Exclusive", "Shared", "Maintenance"] = Field(
        "Exclusive",
        description="Exclusive (default): the whole asset. Shared: one slot of its capacity. Maintenance: the "
        "whole asset, and "
        "nobody writes but its maintainers; needs the verb `maintain`.",
    )
    ttl: PositiveDuration | None = Field(
        None,
        description="How long the lock lasts unless it is renewed, such as 30m, 2h or PT30M. Default: the Asset's "
        "defaultTTL, else the operator's.",
    )
    renew_time: MicroTime | None = Field(
        None,
        description="Renews the lock: write the present time here, as in a Lease, and it lasts another ttl. The "
        "server's time is stored, whatever you write. A renewal less than ten seconds after the last one counts as "
        "that one, unless the lock is about to expire.",
    )
    wait: Duration = Field(
        "0s",
        description="How long to queue for the lock, such as 10m. Default: 0s, which fails at once if the lock "
        "is not free.",
    )
    when_held: Literal["Wait", "Revoke", "Skip"] | None = Field(
        None,
        description="With Maintenance, what happens if somebody holds the asset. Wait (default): this lock comes "
        "next, "
        "before all waiters, however long that takes unless wait is set. Revoke: their lock ends at once, which "
        "needs "
        "the verb `unlock`. Skip: this lock fails.",
    )
    maintainers: list[Subject] = Field(
        default_factory=list,
        max_length=32,
        description="With Maintenance, who may write meanwhile. Default: nobody, not even the lock's creator.",
    )
    priority: int = Field(
        0,
        ge=-1000,
        le=1000,
        description="Higher priorities are served first; equal ones in order of creation. Default: 0.",
    )
    holder: LockHolder | None = Field(
        None,
        description="Who the lock is for. Default: its creator. Naming somebody else needs the verb `delegate`.",
    )
    holder_id: str | None = Field(
        None,
        max_length=253,
        description="Your own name for the holder, such as a build. Informational; not used for authorization.",
    )
    bind_to: Literal["User", "Pod", "Credential"] = Field(
        "User",
        description="User: whoever is authenticated as that user may write. Pod: only that very pod. "
        "Credential: only that very token or client certificate.",
    )
    extend_on_write: bool = Field(
        True, description="Whether the holder's writes to targets renew the lock. Default: true."
    )
    release_with_holder: bool | None = Field(
        None,
        description="Whether the lock ends with the holder's pod. Default: true with bindTo: Pod, else false. A "
        "waiting "
        "lock ends with the pod unless this is false.",
    )
    on_expiry: Literal["Release", "Quarantine"] = Field(
        "Release",
        description="What follows when the lock expires, or its pod fails. Release (default): the next waiter "
        "gets the "
        "lock. Quarantine: nobody gets it, and nobody may write, until somebody with the verb `unlock` deletes this "
        "AssetLock or another takes it over.",
    )
    take_over: ObjectName | None = Field(
        None,
        description="The AssetLock, or the Lease that is not an AssetLock's, from which this one takes the asset "
        "over, "
        "without a gap and before all waiters. Needs the verb `delegate`.",
    )
    reason: str | None = Field(None, max_length=1024, description="Why the asset is locked; others see it.")
    ttl_seconds_after_finished: int | None = Field(
        None,
        ge=0,
        le=31_536_000,
        description="Delete this AssetLock so many seconds after it has ended. Default: keep it.",
    )


class LockedAsset(Model):
    """One of several assets that are locked together."""

    name: str = Field(max_length=63, description="The Asset.")
    fencing_token: int | None = Field(
        None, ge=0, description="The fencing token on that asset, once others' writes are refused."
    )


class AssetLockStatus(Model):
    """The state of the lock."""

    state: LockState | None = Field(None, description="Current state. All but Pending and Held are final.")
    queue_position: int | None = Field(None, ge=1, description="The place in the queue; 1 is next.")
    waits_for: str | None = Field(
        None,
        max_length=4096,
        description="Who comes first: the holders, then those ahead in the queue.",
    )
    acquire_time: Time | None = Field(None, description="When the lock was granted.")
    expire_time: Time | None = Field(
        None, description="When the lock ends, if it is not renewed. Absent if it ended before that."
    )
    fencing_token: int | None = Field(
        None,
        ge=0,
        description="The number of this acquisition, for systems that compare fencing tokens. "
        "With several assets, each has its own in assets.",
    )
    assets: list[LockedAsset] | None = Field(
        None,
        max_length=MOST_TOGETHER,
        description="With several assets, those that are fenced for this lock; with assetSelector those that were "
        "chosen. It holds none before it holds all.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )
    asset_list: str | None = Field(
        None, max_length=253, description="With several assets, which ones, in short."
    )
    tokens: str | None = Field(
        None, max_length=253, description="With several assets, their fencing tokens, in short."
    )
    attempt: int | None = Field(
        None,
        ge=0,
        description="With several assets, how often some were taken and given back.",
    )
    finish_time: Time | None = Field(None, description="When the lock ended.")
    conditions: Conditions = Field(
        default_factory=list,
        description="Acquired, Finished, and Settled: true once the lock is held or has ended. HolderAlive is "
        "Unknown while nobody can tell whether the holder's pod still lives. Fenced: whether all targets are "
        "protected.",
    )
    observed_generation: int | None = Field(None, ge=0, description="The generation that this was made from.")


class AssetLock(Model):
    """One acquisition of an Asset's lock. Deleting it releases the lock."""

    model_config = ConfigDict(
        json_schema_extra=cel.rules(
            cel.rule(
                "!has(oldSelf.status) || !has(oldSelf.status.state) || "
                "oldSelf.status.state in ['Pending', 'Held'] || "
                "(has(self.status) && has(self.status.state) && self.status.state == oldSelf.status.state)",
                "a lock that has ended stays so; create another AssetLock instead",
                field="status.state",
            ),
            cel.rule(
                "!has(oldSelf.status) || !has(oldSelf.status.state) || "
                "oldSelf.status.state in ['Pending', 'Held'] || !has(self.spec.renewTime) || "
                "(has(oldSelf.spec.renewTime) && self.spec.renewTime == oldSelf.spec.renewTime)",
                "a lock that has ended can't be renewed; create another AssetLock",
                field="spec.renewTime",
            ),
            cel.rule(
                "!has(self.spec.takeOver) || self.spec.takeOver != self.metadata.name",
                "a lock can't take over from itself",
                field="spec.takeOver",
            ),
        )
    )

    metadata: ObjectMeta
    spec: AssetLockSpec
    status: AssetLockStatus = Field(default_factory=AssetLockStatus)
