"""What our admission process adds to requests, as plugins of the in-memory server. It may be `down`.

The webhooks themselves are tried on a real API server; here is only what they have to come to.
"""

import contextlib
import random
import uuid
from collections.abc import Iterator
from typing import Any

from assetlock.core import names
from assetlock.model.times import format_micro_time
from tests.sim import failures
from tests.sim.admission import Attributes, Plugin
from tests.sim.kinds import ASSETLOCKS, LEASES
from tests.sim.policies import holder_of, is_lock, is_operator, owns
from tests.sim.store import Json
from tests.sim.virtual import Clock

POD_NAME = "authentication.kubernetes.io/pod-name"
POD_UID = "authentication.kubernetes.io/pod-uid"
_OURS = (
    names.OWNER_ANNOTATION,
    names.ACQUISITION_ANNOTATION,
    names.LOCK_ANNOTATION,
    names.TOKEN_ANNOTATION,
)


class Webhooks:
    """All of them. While they are down AssetLocks are refused, and Leases are left as they were sent."""

    def __init__(self, clock: Clock, seed: int | str) -> None:
        self._up = True
        self._clock = clock
        self._random = random.Random(f"admission/{seed}")

    def plugins(self) -> list[Plugin]:
        """What the server runs."""
        return [Plugin(mutate=self._name_holder), Plugin(mutate=self._stamp_lease)]

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """Do not answer meanwhile."""
        self._up = False
        try:
            yield
        finally:
            self._up = True

    def _name_holder(self, attributes: Attributes) -> Json | None:
        if attributes.served is not ASSETLOCKS or attributes.operation != "CREATE" or attributes.new is None:
            return None
        if is_operator(attributes):
            return None
        if not self._up:
            raise failures.internal_error('failed calling webhook "assetlocks.assetlock.dev"')
        user = attributes.user
        holder = {"username": user.name}
        if user.extra:
            holder |= {"podName": user.extra[POD_NAME][0], "podUID": user.extra[POD_UID][0]}
        return {**attributes.new, "spec": {**attributes.new["spec"], "holder": holder}}

    def _stamp_lease(self, attributes: Attributes) -> Json | None:
        """Owner, acquisition and times are not the client's to say."""
        old, new = attributes.old, attributes.new
        if attributes.served is not LEASES or new is None or not is_lock(new) or is_operator(attributes):
            return None
        if not self._up:
            return None
        before = old["metadata"].get("annotations", {}) if old else {}
        spec: dict[str, Any] = {**new.get("spec", {})}
        now = format_micro_time(self._clock.now())
        ours: dict[str, str] = {}
        if holder_of(new) and holder_of(new) != holder_of(old):
            acquisition = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
            ours = {
                names.OWNER_ANNOTATION: f"- {attributes.user.name}",
                names.ACQUISITION_ANNOTATION: acquisition,
            }
            transitions = old["spec"].get("leaseTransitions", 0) + 1 if old else 0
            spec |= {"acquireTime": now, "renewTime": now, "leaseTransitions": transitions}
        elif old is not None and holder_of(new):
            ours = {key: before[key] for key in _OURS if key in before}
            alive = owns(attributes, old) or attributes.user.name == names.ADMISSION_USER
            renewed = now if alive else old["spec"].get("renewTime")
            spec |= {"acquireTime": old["spec"].get("acquireTime"), "renewTime": renewed}
        annotations = {k: v for k, v in new["metadata"].get("annotations", {}).items() if k not in _OURS}
        metadata = {**new["metadata"], "annotations": annotations | ours}
        return {**new, "metadata": metadata, "spec": spec}
