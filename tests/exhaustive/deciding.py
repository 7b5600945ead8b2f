"""The real decision, made on a state of the model: observation in, plan out."""

from __future__ import annotations

import copy
import datetime
import functools

from assetlock.core import decision as d
from assetlock.core import names
from assetlock.core.decide import decide
from assetlock.core.observation import Observation, ObservedLease, ObservedTarget
from assetlock.model.asset import Asset, Target
from assetlock.model.assetlock import AssetLock
from assetlock.model.lease import Lease
from assetlock.model.times import format_micro_time, format_time
from assetlock.model.window import MaintenanceWindow
from tests.exhaustive.state import Condition, Plan, World, Write
from tests.exhaustive.texts import Json, parsed, text_of

NOW = datetime.datetime(2026, 3, 28, 12, 0, tzinfo=datetime.UTC)
LONG_AGO = NOW - datetime.timedelta(hours=3)
ASSET, NAMESPACE = "vm", "team"
THE_ASSET, THE_WINDOW = "asset/vm", "window/nightly"
NIGHT = datetime.timedelta(hours=1)


@functools.cache
def plan_of(world: World) -> Plan | None:
    """What a controller that sees this world would do; nothing if it is only about what is shown."""
    decision = decide(_observe(world))
    if not decision.writes or decision.leisurely:
        return None
    conditions = tuple(_condition(world, confirmation) for confirmation in decision.confirm)
    return Plan(conditions, tuple(_write(world, write) for write in decision.writes))


def holds(world: World, condition: Condition) -> bool:
    """Whether a live read finds what it must; ``same`` does as long as the plan has not become outdated."""
    text = world.get(condition.place)
    if condition.what == "absent":
        return text is None
    if condition.what == "gone":
        return text is None or parsed(text)["metadata"]["uid"] != condition.uid
    return True


def _observe(world: World) -> Observation:
    asset = world.get(THE_ASSET)
    return Observation(
        now=NOW,
        namespace=NAMESPACE,
        name=ASSET,
        asset=_asset(asset) if asset else None,
        locks=tuple(
            _lock(world.get(place) or "", number, place in world.over)
            for number, place in enumerate(world.line)
        ),
        leases=tuple(_lease(place, text, place in world.over) for place, text in world.under("lease/")),
        targets=tuple(_target(place.partition("/")[2], text) for place, text in world.under("target/")),
        windows=tuple(_window(text) for _, text in world.under(THE_WINDOW)),
    )


@functools.cache
def _asset(text: str) -> Asset:
    return Asset.model_validate(_versioned(text, THE_ASSET))


@functools.cache
def _lock(text: str, number: int, over: bool) -> AssetLock:
    raw = _versioned(text, f"lock/{parsed(text)['metadata']['name']}")
    made = LONG_AGO if over else NOW - datetime.timedelta(minutes=30 - number)
    raw["metadata"]["creationTimestamp"] = format_time(made)
    return AssetLock.model_validate(raw)


@functools.cache
def _lease(place: str, text: str, over: bool) -> ObservedLease:
    raw, seen = _versioned(text, place), LONG_AGO if over else NOW
    raw["spec"] |= dict.fromkeys(("acquireTime", "renewTime"), format_micro_time(seen))
    slot = names.slot_of(ASSET, place.partition("/")[2])
    assert slot is not None, place
    return ObservedLease(slot, Lease.model_validate(raw), seen)


@functools.cache
def _target(name: str, text: str) -> ObservedTarget:
    meta = parsed(text)["metadata"]
    return ObservedTarget(
        Target(api_version="v1", kind="ConfigMap", name=name),
        uid=meta["uid"],
        resource_version=f"target/{name}",
        labels=meta.get("labels", {}),
        annotations=meta.get("annotations", {}),
    )


def window_of(night: int, when_held: str) -> str:
    """A window that has opened not long ago. No two nights began at the same time."""
    spec = {
        "assetNames": [ASSET],
        "start": format_time(NOW - datetime.timedelta(minutes=night)),
        "end": format_time(NOW + NIGHT),
        "whenHeld": when_held,
        "maintainers": [{"kind": "User", "name": "keeper"}],
        "reason": f"night {night}",
    }
    return text_of({"metadata": {"name": "nightly", "uid": "nightly"}, "spec": spec})


@functools.cache
def _window(text: str) -> MaintenanceWindow:
    return MaintenanceWindow.model_validate(_versioned(text, THE_WINDOW))


def _versioned(text: str, place: str) -> Json:
    raw = copy.deepcopy(parsed(text))
    raw["metadata"]["resourceVersion"] = place
    return raw


def _condition(world: World, confirmation: d.Confirmation) -> Condition:
    match confirmation:
        case d.ConfirmLease(name=name, resource_version=None):
            return Condition("absent", f"lease/{name}")
        case d.ConfirmLease(name=name, resource_version=version):
            assert version == f"lease/{name}" and world.get(version), confirmation
            return Condition("same", version)
        case d.ConfirmLockGone(name=name, uid=uid):
            return Condition("gone", f"lock/{name}", uid)
        case d.ConfirmAsset(resource_version=None):
            return Condition("absent", THE_ASSET)
        case d.ConfirmAsset(resource_version=version):
            assert version == THE_ASSET and world.get(version), confirmation
            return Condition("same", THE_ASSET)


def _write(world: World, write: d.Write) -> Write:
    """The write in the model; that it carries the version it was decided on is part of what is checked."""
    match write:
        case d.CreateLease(body=body):
            return Write(f"lease/{body['metadata']['name']}", _made_anew(body), create=True, new_term=True)
        case d.CreateLock(body=body):
            place = f"lock/{body['metadata']['name']}"
            return Write(place, text_of({**body, "status": {}}), create=True)
        case d.ReplaceLease(body=body):
            return Write(_compared(world, body["metadata"]), _made_anew(body), new_term=True)
        case d.DeleteLease(uid=uid, resource_version=version):
            return Write(_compared(world, {"uid": uid, "resourceVersion": version}), None)
        case d.DeleteLock(uid=uid, resource_version=version):
            return Write(_compared(world, {"uid": uid, "resourceVersion": version}), None)
        case d.AnnounceOnLease(patch=patch) | d.PatchTarget(patch=patch):
            place = _compared(world, patch["metadata"])
            return Write(place, _merged(world.get(place) or "", patch))
        case d.WriteAssetStatus(body=body) | d.WriteLockStatus(body=body):
            place = _compared(world, body["metadata"])
            return Write(place, text_of({**parsed(world.get(place) or ""), "status": body["status"]}))


def _made_anew(body: Json) -> str:
    return text_of({**body, "metadata": {**body["metadata"], "uid": "lease"}})


def _compared(world: World, precondition: Json) -> str:
    place: str = precondition["resourceVersion"]
    text = world.get(place)
    assert text and parsed(text)["metadata"]["uid"] == precondition["uid"], (
        f"nothing to compare: {precondition}"
    )
    return place


def _merged(text: str, patch: Json) -> str:
    raw = copy.deepcopy(parsed(text))
    for field in ("labels", "annotations"):
        merged = raw["metadata"].get(field, {}) | patch["metadata"].get(field, {})
        raw["metadata"][field] = {key: value for key, value in merged.items() if value is not None}
    return text_of(raw)
