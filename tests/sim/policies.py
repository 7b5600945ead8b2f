"""What admission promises the controller, as plugins of the in-memory server: the fence, and who asks.

The policies and webhooks themselves are tried on a real API server; here is only what they have to come to.
"""

import random
import uuid
from collections.abc import Iterator
from typing import Any

from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.resources import POLICIES, POLICY_BINDINGS, Resource
from assetlock.model.times import format_micro_time
from tests.sim import failures
from tests.sim.admission import Attributes, Plugin
from tests.sim.kinds import ASSETLOCKS, ASSETS, LEASES
from tests.sim.store import Json
from tests.sim.virtual import Clock

SUPERUSER = "root"
POD_NAME = "authentication.kubernetes.io/pod-name"
POD_UID = "authentication.kubernetes.io/pod-uid"
_OURS = (
    names.OWNER_ANNOTATION,
    names.ACQUISITION_ANNOTATION,
    names.LOCK_ANNOTATION,
    names.TOKEN_ANNOTATION,
)


def plugins(clock: Clock, seed: int | str) -> list[Plugin]:
    """All of them; `clock` is that of admission."""
    stamps = _LeaseStamps(clock, random.Random(f"admission/{seed}"))
    return [
        Plugin(mutate=_name_holder),
        Plugin(mutate=stamps.mutate, validate=_guard_leases),
        Plugin(validate=_fence),
    ]


def claims_on(obj: Json) -> dict[str, list[str]]:
    """The stamps that count on an object: by annotation, a line for each holder."""
    metadata = obj["metadata"]
    if metadata.get("labels", {}).get(names.FENCED_LABEL) != "true":
        return {}
    claims = {}
    for key, value in metadata.get("annotations", {}).items():
        uid, *holders = value.split("\n")
        if key.endswith(names.STAMP_SUFFIX) and uid == metadata["uid"]:
            claims[key] = holders
    return claims


def _is_operator(attributes: Attributes) -> bool:
    return attributes.user.name == names.CONTROLLER_USER


def _refuse(attributes: Attributes, why: str) -> failures.Refusal:
    served = attributes.served
    return failures.forbidden(served.group, served.plural, attributes.name, why)


def walls() -> Iterator[tuple[Resource, Json]]:
    """What the controller looks for before it believes that the fence is there; `plugins` is what it does."""
    for resource in (POLICIES, POLICY_BINDINGS):
        for name in (names.TARGETS_POLICY, names.SUBRESOURCES_POLICY):
            kind = {"apiVersion": resource.api_version, "kind": resource.kind}
            yield resource, {**kind, "metadata": {"name": name}}


async def install(api: Api) -> None:
    """Have the controller find the fence."""
    for resource, body in walls():
        await api.create(resource, None, body)


def _fence(attributes: Attributes) -> None:
    """The operator's dry runs are met like a stranger's writes."""
    old, operates = attributes.old, _is_operator(attributes) and not attributes.dry_run
    if operates or old is None or attributes.served in (ASSETS, ASSETLOCKS, LEASES):
        return
    claims = claims_on(old)
    me = f"- {attributes.user.name}"
    if not all(any(line.partition(" ")[2] == me for line in lines) for lines in claims.values()):
        raise _refuse(attributes, f"policy {names.TARGETS_POLICY!r}: Locked")
    if attributes.new is not None and claims_on(attributes.new) != claims:
        raise _refuse(attributes, f"policy {names.TARGETS_POLICY!r}: stamps are the operator's alone")


def _name_holder(attributes: Attributes) -> Json | None:
    if attributes.served is not ASSETLOCKS or attributes.operation != "CREATE" or attributes.new is None:
        return None
    if _is_operator(attributes):
        return None
    user = attributes.user
    holder = {"username": user.name}
    if user.extra:
        holder |= {"podName": user.extra[POD_NAME][0], "podUID": user.extra[POD_UID][0]}
    return {**attributes.new, "spec": {**attributes.new["spec"], "holder": holder}}


def _is_lock(obj: Json | None) -> bool:
    return obj is not None and names.ASSET_LABEL in obj["metadata"].get("labels", {})


def _holder(obj: Json | None) -> str:
    return str((obj or {}).get("spec", {}).get("holderIdentity") or "")


def _owns(attributes: Attributes, old: Json) -> bool:
    annotations = old["metadata"].get("annotations", {})
    owner = annotations.get(names.OWNER_ANNOTATION)
    return names.LOCK_ANNOTATION not in annotations and owner == f"- {attributes.user.name}"


def _guard_leases(attributes: Attributes) -> None:
    old = attributes.old
    if attributes.served is not LEASES or old is None or not _is_lock(old) or _is_operator(attributes):
        return
    others = (SUPERUSER, names.ADMISSION_USER)
    if _holder(old) and not _owns(attributes, old) and attributes.user.name not in others:
        raise _refuse(attributes, "Locked")


class _LeaseStamps:
    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._random = rng

    def mutate(self, attributes: Attributes) -> Json | None:
        """Owner, acquisition and times are not the client's to say."""
        old, new = attributes.old, attributes.new
        if attributes.served is not LEASES or new is None or not _is_lock(new) or _is_operator(attributes):
            return None
        before = old["metadata"].get("annotations", {}) if old else {}
        spec: dict[str, Any] = {**new.get("spec", {})}
        now = format_micro_time(self._clock.now())
        ours: dict[str, str] = {}
        if _holder(new) and _holder(new) != _holder(old):
            acquisition = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
            ours = {
                names.OWNER_ANNOTATION: f"- {attributes.user.name}",
                names.ACQUISITION_ANNOTATION: acquisition,
            }
            transitions = old["spec"].get("leaseTransitions", 0) + 1 if old else 0
            spec |= {"acquireTime": now, "renewTime": now, "leaseTransitions": transitions}
        elif old is not None and _holder(new):
            ours = {key: before[key] for key in _OURS if key in before}
            alive = _owns(attributes, old) or attributes.user.name == names.ADMISSION_USER
            renewed = now if alive else old["spec"].get("renewTime")
            spec |= {"acquireTime": old["spec"].get("acquireTime"), "renewTime": renewed}
        annotations = {k: v for k, v in new["metadata"].get("annotations", {}).items() if k not in _OURS}
        metadata = {**new["metadata"], "annotations": annotations | ours}
        return {**new, "metadata": metadata, "spec": spec}
