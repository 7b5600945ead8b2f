"""A world for the pure decision to act on: objects with resourceVersions, and writes that compare and swap.

It checks what must never be, after every single write, whoever made it. Nothing of it is about I/O; what the
API server itself does is tested against a real one, and the shell in the simulator.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime
from typing import Any

from assetlock.core import decision as d
from assetlock.core import names
from assetlock.core.decide import decide
from assetlock.core.fence.namespace_fence import NamespaceFence, namespace_fence_of
from assetlock.core.fence.stamp import stamp_of
from assetlock.core.observation import (
    Observation,
    ObservedLease,
    ObservedNamespace,
    ObservedTarget,
    Revocation,
)
from assetlock.core.pods import Fate
from assetlock.core.rules.revoking import revocation_of
from assetlock.core.stuck import Stuck, Subject
from assetlock.model.asset import Asset, Target
from assetlock.model.assetlock import AssetLock
from assetlock.model.lease import Lease
from assetlock.model.times import format_micro_time, format_time
from assetlock.model.window import MaintenanceWindow

START = datetime.datetime(2026, 3, 28, 12, 0, tzinfo=datetime.UTC)
NAMESPACE, ASSET = "team-a", "vm-1"
TERMINAL = {"Released", "Expired", "Revoked", "Failed", "Quarantined"}


class Stale(Exception):
    """A write was decided on a version that is no more."""


@dataclasses.dataclass
class World:
    now: datetime.datetime = START
    name: str = ASSET
    version: int = 0
    uids: int = 0
    asset: dict[str, Any] | None = None
    leases: dict[int, dict[str, Any]] = dataclasses.field(default_factory=dict)
    locks: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    targets: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    spaces: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    scalable: set[str] = dataclasses.field(default_factory=set)
    secret: set[str] = dataclasses.field(default_factory=set)
    problems: dict[str, str] = dataclasses.field(default_factory=dict)
    pods: dict[str, Fate] = dataclasses.field(default_factory=dict)
    windows: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    seen: dict[str, datetime.datetime] = dataclasses.field(default_factory=dict)
    terms: dict[int, tuple[tuple[Any, ...], datetime.datetime]] = dataclasses.field(default_factory=dict)
    revocation: Revocation | None = None
    stuck: dict[Subject, Stuck] = dataclasses.field(default_factory=dict)
    announced: list[tuple[str, int]] = dataclasses.field(default_factory=list)
    writes: list[d.Write] = dataclasses.field(default_factory=list)

    @property
    def lease(self) -> dict[str, Any] | None:
        """The Lease of the first slot, which is the only one of most assets."""
        return self.leases.get(0)

    @lease.setter
    def lease(self, lease: dict[str, Any] | None) -> None:
        self.leases.pop(0, None)
        if lease is not None:
            self.leases[0] = lease

    # What users do.

    def make_asset(self, *targets: str, **spec: Any) -> None:
        status = {"lockState": "Unlocked", "holders": [], "queue": [], "queueLength": 0, "fencingToken": 0}
        spec = {"type": "VM", "targets": list(map(self._by_name, targets)), **spec}
        self.asset = {"metadata": self._meta(self.name), "spec": spec, "status": status}

    def retarget(self, *targets: str) -> None:
        """Have the asset name these from now on."""
        assert self.asset is not None
        self.asset["spec"]["targets"] = list(map(self._by_name, targets))
        self.asset["metadata"]["generation"] += 1
        self._touch(self.asset)

    def make_target(self, name: str, *, scales: bool = False) -> None:
        self.targets[name] = {"metadata": self._meta(name)}
        if scales:
            self.scalable.add(name)

    def make_namespace(self, name: str = NAMESPACE) -> None:
        self.spaces[name] = {"metadata": self._meta(name)}

    def ask(self, name: str, user: str = "alice", **spec: Any) -> None:
        spec = {
            "assetName": self.name,
            "mode": "Exclusive",
            "wait": "0s",
            "holder": {"username": user},
            **spec,
        }
        self.locks[name] = {"metadata": self._meta(name), "spec": spec, "status": {}}

    def ask_from_pod(self, name: str, **spec: Any) -> str:
        """Ask with a token that is bound to a pod of the lock's own name; gives the pod's UID."""
        uid = f"pod-{name}-{self.uids}"
        user = f"system:serviceaccount:{NAMESPACE}:{name}"
        self.ask(name, user, **{"holder": {"username": user, "podName": name, "podUID": uid}, **spec})
        return uid

    def schedule(self, name: str, **spec: Any) -> None:
        """A maintenance window of the asset, new or changed."""
        spec = {"assetNames": [self.name], "kind": "Block", "whenHeld": "Wait", **spec}
        self.windows[name] = {
            "metadata": self.windows.get(name, {}).get("metadata", self._meta(name)),
            "spec": spec,
        }

    def withdraw(self, name: str) -> None:
        self.locks.pop(name, None)

    def hand_make(self, user: str = "job", seconds: int = 60, slot: int = 0) -> bool:
        if slot in self.leases:
            return False
        stamp = format_micro_time(self.now)
        meta = self._meta(names.lease_name(self.name, slot))
        meta["labels"] = {names.ASSET_LABEL: self.name}
        meta["annotations"] = {
            names.OWNER_ANNOTATION: f"- {user}",
            names.ACQUISITION_ANNOTATION: f"a-{meta['uid']}",
        }
        spec = {
            "holderIdentity": user,
            "leaseDurationSeconds": seconds,
            "acquireTime": stamp,
            "renewTime": stamp,
        }
        self.leases[slot] = {"metadata": meta, "spec": {**spec, "leaseTransitions": 0}}
        self._see_terms()
        return True

    def renew_by_hand(self, slot: int = 0) -> None:
        if lease := self.leases.get(slot):
            lease["spec"]["renewTime"] = format_micro_time(self.now)
            self._touch(lease)
            self._see_terms()

    def mark_revoked(self, by: str) -> None:
        """Somebody with the right to says on the Lease that the lock is to end."""
        assert self.lease is not None
        self.lease["metadata"]["annotations"][names.REVOKED_ANNOTATION] = by
        self._touch(self.lease)

    def drop_lease(self, slot: int = 0) -> None:
        self.leases.pop(slot, None)
        self._see_terms()

    def make_free(self) -> None:
        """A Lease that nobody holds, for leader elections to take."""
        if 0 not in self.leases:
            meta = self._meta(names.lease_name(self.name))
            meta["labels"] = {names.ASSET_LABEL: self.name}
            meta["annotations"] = {names.KEEP_ANNOTATION: "true"}
            self.leases[0] = {"metadata": meta, "spec": {"leaseTransitions": 0}}
            self._see_terms()

    def take(self, user: str = "elector", seconds: int = 60) -> bool:
        """Take a free Lease by an update, as leader elections do."""
        lease = self.leases.get(0)
        if lease is None or lease["spec"].get("holderIdentity"):
            return False
        transitions = lease["spec"]["leaseTransitions"] + 1
        lease["metadata"]["annotations"] |= {
            names.OWNER_ANNOTATION: f"- {user}",
            names.ACQUISITION_ANNOTATION: f"a-{user}-{transitions}",
        }
        stamp = format_micro_time(self.now)
        lease["spec"] = {
            "holderIdentity": user,
            "leaseDurationSeconds": seconds,
            "acquireTime": stamp,
            "renewTime": stamp,
            "leaseTransitions": transitions,
        }
        self._touch(lease)
        self._see_terms()
        return True

    def pass_time(self, seconds: float) -> None:
        self.now += datetime.timedelta(seconds=seconds)

    def change_leader(self, seconds: float) -> None:
        """Another process leads from now on: its clock is ahead by so much, and it sees all for the first time."""
        self.pass_time(seconds)
        self.seen = dict.fromkeys(self.seen, self.now)
        self.terms = {slot: (term, self.now) for slot, (term, _) in self.terms.items()}

    @property
    def capacity(self) -> int:
        return int(self.asset["spec"].get("capacity", 1)) if self.asset else 1

    def resize(self, capacity: int) -> None:
        assert self.asset is not None
        self.asset["spec"]["capacity"] = capacity
        self._touch(self.asset)

    def is_full(self) -> bool:
        """Whether every slot is taken, there are as many holders as slots, or one that needs them all."""
        held = self.holders()
        taken = set(range(self.capacity)) <= set(self.leases)
        return taken or len(held) >= self.capacity or "Exclusive" in held

    def state(self, name: str) -> str | None:
        state = self.locks[name]["status"].get("state")
        return str(state) if state else None

    def stamped_users(self, target: str) -> list[str]:
        meta = self.targets[target]["metadata"]
        stamp = stamp_of(meta["annotations"], names.stamp_key(self.name, NAMESPACE), meta["uid"])
        return [holder.identity.username.partition(": ")[0] for holder in stamp.told] if stamp else []

    def writers(self, target: str) -> list[str]:
        """Whom the stamp lets write, as its lines name them."""
        meta = self.targets[target]["metadata"]
        stamp = stamp_of(meta["annotations"], names.stamp_key(self.name, NAMESPACE), meta["uid"])
        lines = [holder.identity for holder in stamp.holders] if stamp else []
        return [str(identity) for identity in lines if not identity.is_closing]

    def guard(self, namespace: str = NAMESPACE) -> NamespaceFence | None:
        annotations = self.spaces[namespace]["metadata"]["annotations"]
        return namespace_fence_of(annotations, names.namespace_fence_key(self.name, NAMESPACE))

    # What the controller sees and does.

    def observe(self) -> Observation:
        asset = Asset.model_validate(self.asset) if self.asset else None
        named = [target.name for target in asset.spec.targets] if asset else []
        others = [name for name in self.targets if name not in named and self._is_watched(name, asset)]
        return Observation(
            now=self.now,
            namespace=NAMESPACE,
            name=self.name,
            asset=asset,
            locks=tuple(AssetLock.model_validate(raw) for raw in self.locks.values()),
            leases=tuple(
                ObservedLease(slot, Lease.model_validate(raw), self._seen_at(slot))
                for slot, raw in self.leases.items()
            ),
            locks_seen=dict(self.seen),
            pods=dict(self.pods),
            windows=tuple(MaintenanceWindow.model_validate(raw) for raw in self.windows.values()),
            targets=tuple(self._target(name, name in named) for name in [*named, *others]),
            namespaces=tuple(map(self._space, self.spaces)),
            revocation=self.revocation,
            stuck=dict(self.stuck),
        )

    def decided(self) -> d.Decision:
        """What the controller does next; it stamps only where the Asset lists that its stamps may be."""
        observation = self.observe()
        decision = decide(observation)
        listed = observation.asset.status.fenced_places if observation.asset else []
        places = [(place.api_version, place.kind, place.namespace) for place in listed]
        for write in decision.writes:
            if isinstance(write, d.PatchTarget) and any(write.patch["metadata"]["annotations"].values()):
                target, namespace = write.target.target, write.target.namespace
                assert (target.api_version, target.kind, namespace) in places, f"{target} is not listed"
        return decision

    def revoke(self, by: str = "root", *, steps: int = 200) -> list[d.Write]:
        """End what holds the lock now as somebody does without an operator, and be gone; gives the writes."""
        self.revocation = revocation_of(self.observe(), by)
        done: list[d.Write] = []
        for _ in range(steps):
            for write in self.decided().writes[:1]:
                self.apply(write)
                done.append(write)
        self.revocation = None
        return done

    def settle(self, *, most: int = 200) -> list[d.Write]:
        """Decide and apply until nothing is left to do; gives the writes."""
        done: list[d.Write] = []
        for _ in range(most):
            decision = self.decided()
            if not decision.writes:
                return done
            for write in decision.writes:
                self.apply(write)
                done.append(write)
        raise AssertionError(f"no end in {most} decisions: {[type(w).__name__ for w in done[-6:]]}")

    def apply(self, write: d.Write) -> None:
        """Make a write if its version is the present one, else raise Stale; then check what must never be."""
        before = copy.deepcopy(self)
        match write:
            case d.CreateLease(body=body):
                slot = self._slot(body["metadata"]["name"])
                if slot in self.leases:
                    raise Stale
                metadata = {**self._meta(body["metadata"]["name"]), **body["metadata"]}
                self.leases[slot] = {**copy.deepcopy(body), "metadata": metadata}
            case d.ReplaceLease(body=body):
                slot = self._slot(body["metadata"]["name"])
                self._swap(self.leases.get(slot), body["metadata"])
                assert _said(body) != _said(self.leases[slot]), (
                    "a write that changes nothing is made for ever"
                )
                self.leases[slot] = copy.deepcopy(body)
                self._touch(self.leases[slot])
            case d.AnnounceOnLease(name=name, patch=patch):
                self._merge(self.leases.get(self._slot(name)), patch)
            case d.DeleteLease(name=name, uid=uid, resource_version=version):
                self._swap(self.leases.get(self._slot(name)), {"uid": uid, "resourceVersion": version})
                del self.leases[self._slot(name)]
            case d.WriteAssetStatus(body=body):
                self._swap(self.asset, body["metadata"])
                assert self.asset is not None
                assert body["status"] != self.asset["status"], "a write that changes nothing is made for ever"
                self.asset["status"] = copy.deepcopy(body["status"])
                self._touch(self.asset)
            case d.WriteLockStatus(body=body):
                lock = self.locks.get(body["metadata"]["name"])
                self._swap(lock, body["metadata"])
                assert lock is not None
                assert body["status"] != lock["status"], "a write that changes nothing is made for ever"
                lock["status"] = copy.deepcopy(body["status"])
                self._touch(lock)
            case d.PatchTarget(target=observed, patch=patch):
                self._merge(self.targets.get(observed.target.name), patch)
            case d.PatchNamespace(namespace=space, patch=patch):
                self._merge(self.spaces.get(space.name), patch)
            case d.CreateLock(body=body):
                if body["metadata"]["name"] in self.locks:
                    raise Stale
                metadata = {**self._meta(body["metadata"]["name"]), **copy.deepcopy(body["metadata"])}
                spec = {"wait": "0s", **copy.deepcopy(body["spec"])}
                self.locks[metadata["name"]] = {"metadata": metadata, "spec": spec, "status": {}}
            case d.DeleteLock(name=name, uid=uid, resource_version=version):
                self._swap(self.locks.get(name), {"uid": uid, "resourceVersion": version})
                del self.locks[name]
        self._see_terms()
        self.writes.append(write)
        self._check(before)

    # What must never be.

    def _check(self, before: World) -> None:
        held = [name for name in self.locks if self.state(name) == "Held" and self._is_about(name)]
        self._check_holders(before)
        if self.asset and before.asset and self.asset["metadata"]["uid"] == before.asset["metadata"]["uid"]:
            assert self.asset["status"]["fencingToken"] >= before.asset["status"]["fencingToken"], (
                "token fell"
            )
        for name, lock in self.locks.items():
            old = before.locks.get(name)
            if old and old["metadata"]["uid"] == lock["metadata"]["uid"]:
                self._check_lock(name, old["status"], lock["status"])
        for name in held:
            user = self.locks[name]["spec"]["holder"]["username"]
            for target in set(self.targets) & set(self._named()):
                stamped = self.stamped_users(target)
                assert not stamped or user in stamped, f"{name} is Held, {target} stamped for others"
                allowed = max(self.capacity, len(before.recorded()), len(before.stamped_users(target)))
                assert len(stamped) <= allowed, "stamped for more"

    def holders(self) -> list[str]:
        """The modes of those who were told that they hold."""
        told = [
            lock["spec"]["mode"]
            for name, lock in self.locks.items()
            if self.state(name) == "Held" and self._is_about(name)
        ]
        for lease in self.leases.values():
            by_hand = names.LOCK_ANNOTATION not in lease["metadata"]["annotations"]
            if by_hand and names.TOKEN_ANNOTATION in lease["metadata"]["annotations"]:
                told.append("Shared")
        return told

    def _check_holders(self, before: World) -> None:
        """Who comes onto the Asset fits its capacity, a writer alone; who was there may stay when it shrinks."""
        recorded, earlier = self.recorded(), before.recorded()
        if len(recorded) > len(earlier):
            assert len(recorded) <= self.capacity, f"{recorded} at a capacity of {self.capacity}"
        alone = {"Exclusive", "Maintenance"} & set(recorded.values())
        assert not alone or len(recorded) == 1, f"a holder who needs to be is not alone: {recorded}"

    def recorded(self) -> dict[str, str]:
        """The modes of those whom the Asset names, by acquisition."""
        holders = self.asset["status"]["holders"] if self.asset else []
        return {holder["acquisition"]: holder["mode"] for holder in holders}

    def _check_lock(self, name: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        if old.get("state") in TERMINAL:
            assert new.get("state") == old["state"], f"{name} left its terminal state {old['state']}"
        if new.get("state") == "Held" and old.get("state") != "Held" and self._is_about(name):
            self._check_announcement(name, self._token(new))

    def _is_about(self, name: str) -> bool:
        spec, status = self.locks[name]["spec"], self.locks[name]["status"]
        chosen = [one["name"] for one in status.get("assets") or ()]
        return self.name in spec.get("assetNames", [spec.get("assetName"), *chosen])

    def _token(self, status: dict[str, Any]) -> int:
        """The token on this asset that a lock tells."""
        told = {one["name"]: one["fencingToken"] for one in status.get("assets") or ()}
        return int(told.get(self.name) or status["fencingToken"])

    def _check_announcement(self, name: str, token: int) -> None:
        assert self.asset is not None
        asset = self.asset["metadata"]["uid"]
        assert all(token > earlier for where, earlier in self.announced if where == asset), "token not new"
        assert self.asset["status"]["fencingToken"] >= token, "announced before recorded"
        uid = self.locks[name]["metadata"]["uid"]
        recorded = {each.partition(".")[0] for each in self.recorded()}
        assert uid in recorded, f"{name} announced and not on the Asset"
        advised = self.problems if self.asset["spec"].get("enforcement") == "Advisory" else {}
        for target in set(self._named()) & set(self.targets) - set(advised):
            user = self.locks[name]["spec"]["holder"]["username"]
            stamped = self.stamped_users(target)
            alone = self.locks[name]["spec"]["mode"] == "Exclusive"
            assert user in stamped, f"{name} announced before {target} was stamped"
            assert not alone or stamped == [user], (
                f"{name} announced while {target} was stamped for {stamped}"
            )
            if target in self.scalable:
                assert self._guards(target, user), f"{name} announced before {target} was guarded"
        self.announced.append((asset, token))

    def _guards(self, target: str, user: str) -> bool:
        guard = self.guard()
        users = [holder.identity.username for holder in guard.holders] if guard else []
        return guard is not None and target in [line.name for line in guard.targets] and user in users

    def _named(self) -> list[str]:
        return [target["name"] for target in self.asset["spec"]["targets"]] if self.asset else []

    # How an API server keeps objects.

    def _meta(self, name: str) -> dict[str, Any]:
        self.version += 1
        self.uids += 1
        uid = f"uid-{self.uids}"
        self.seen[uid] = self.now
        return {
            "name": name,
            "namespace": NAMESPACE,
            "uid": uid,
            "resourceVersion": str(self.version),
            "generation": 1,
            "creationTimestamp": format_time(self.now),
            "labels": {},
            "annotations": {},
        }

    def _touch(self, raw: dict[str, Any]) -> None:
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)

    def _swap(self, raw: dict[str, Any] | None, precondition: dict[str, Any]) -> None:
        if raw is None or raw["metadata"]["resourceVersion"] != precondition["resourceVersion"]:
            raise Stale
        if raw["metadata"]["uid"] != precondition["uid"]:
            raise Stale

    def _merge(self, raw: dict[str, Any] | None, patch: dict[str, Any]) -> None:
        self._swap(raw, patch["metadata"])
        assert raw is not None
        for field in ("labels", "annotations"):
            for key, value in patch["metadata"].get(field, {}).items():
                if value is None:
                    raw["metadata"][field].pop(key, None)
                else:
                    raw["metadata"][field][key] = value
        self._touch(raw)

    def _see_terms(self) -> None:
        for slot in set(self.terms) - set(self.leases):
            del self.terms[slot]
        for slot, lease in self.leases.items():
            term = tuple(
                lease["spec"].get(key) for key in ("holderIdentity", "renewTime", "leaseTransitions")
            )
            if self.terms.get(slot, (None,))[0] != term:
                self.terms[slot] = (term, self.now)

    def _seen_at(self, slot: int) -> datetime.datetime:
        return self.terms[slot][1] if slot in self.terms else self.now

    def _by_name(self, name: str) -> dict[str, str]:
        return {"apiVersion": "v1", "kind": "Secret" if name in self.secret else "ConfigMap", "name": name}

    def _is_watched(self, name: str, asset: Asset | None) -> bool:
        """Whether a process that has just started would look at objects like this one."""
        if asset is None:
            return True
        kinds = {each.kind for each in (*asset.spec.targets, *asset.status.fenced_places)}
        return self._by_name(name)["kind"] in kinds

    def _target(self, name: str, wanted: bool) -> ObservedTarget:
        raw = self.targets.get(name)
        target = Target.model_validate(self._by_name(name))
        if self.problems.get(name):
            return ObservedTarget(target, problem=self.problems.get(name), wanted=wanted)
        meta = copy.deepcopy(raw["metadata"]) if raw else {}
        return ObservedTarget(
            target,
            uid=meta.get("uid"),
            resource_version=meta.get("resourceVersion", ""),
            labels=meta.get("labels", {}),
            annotations=meta.get("annotations", {}),
            wanted=wanted,
            resource="deployments.apps" if name in self.scalable else "configmaps",
            namespace=NAMESPACE,
            subresources=frozenset({"scale", "status"} if name in self.scalable else ()),
        )

    def _space(self, name: str) -> ObservedNamespace:
        meta = copy.deepcopy(self.spaces[name]["metadata"])
        return ObservedNamespace(
            name, meta["uid"], meta["resourceVersion"], meta["labels"], meta["annotations"],
            self.problems.get(f"namespace {name}"),
        )  # fmt: skip

    def _slot(self, lease: str) -> int:
        slot = names.slot_of(self.name, lease)
        assert slot is not None, lease
        return slot


def _said(lease: dict[str, Any]) -> tuple[Any, Any]:
    return lease["spec"], lease["metadata"].get("annotations")
