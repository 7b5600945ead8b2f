"""Whether the API server enforces the fence, tried rather than assumed: for each kind in each namespace.

The trial is a dry run of planting a stamp. The policy exempts the controller but for its dry runs, so it must be
refused, like a stranger's; whatever lets it through (a kind that never meets policies, a binding that is gone or
narrowed, a policy that is not in force yet) would let strangers through too. Nothing is written by it.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import defaultdict
from collections.abc import Callable

from assetlock.controller.clock import Clock
from assetlock.controller.keys import AssetKey
from assetlock.controller.targets.claims import Place
from assetlock.controller.targets.fence_policies import FencePolicies
from assetlock.core import names
from assetlock.core.fence.namespace_fence import ALWAYS
from assetlock.core.fence.stamp import Stamp
from assetlock.core.observation import ObservedTarget
from assetlock.kube.api import Api
from assetlock.kube.errors import ApiError, Conflict, Forbidden, NotFound
from assetlock.kube.resources import API_SERVICES, Resource

LONGEST = 300.0
"""Seconds for which a proof is believed, while the policy stays as it is."""

LONGEST_DOUBT = 15.0
"""Seconds after which what was not enforced is tried again."""

SHORTEST = 1.0
"""Seconds that an API server may take to notice a changed policy."""

_TRIES = 3


class NotTried(Exception):
    """Something else refused the trial for this object; says what."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Proof:
    """What came of a trial: the problem if any, until when that is believed, and for which asset it was made."""

    problem: str | None
    until: float
    asset: AssetKey


class FenceProbe:
    """Remembers what was tried. ``changed`` is called with a place where the answer is another one than before."""

    def __init__(
        self, api: Api, clock: Clock, policies: FencePolicies, changed: Callable[[Place], None]
    ) -> None:
        self._api = api
        self._clock = clock
        self._policies = policies
        self._changed = changed
        self._known: dict[Place, _Proof] = {}
        self._turns: defaultdict[Place, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def problem(
        self, key: AssetKey, place: Place, resource: Resource, trial: ObservedTarget
    ) -> str | None:
        """Why objects in a place are not fenced, ready to be read; ``None`` when they are.

        Raises NotTried when the object chosen for the trial is at fault, ApiError when nobody can tell now.
        """
        missing = await self._policies.missing(subresources=bool(resource.subresources & ALWAYS))
        if missing:
            return missing
        known = self._known.get(place)
        if known is not None and known.until > self._clock.monotonic():
            return known.problem
        async with self._turns[place]:
            known = self._known.get(place)
            if known is None or known.until <= self._clock.monotonic():
                problem = await self._try(place, resource, trial)
                self._remember(place, problem, key)
                if known is not None and known.problem != problem:
                    self._changed(place)
            return self._known[place].problem

    def recheck_at(self, key: AssetKey) -> float | None:
        """When a trial that was made for the asset is to be made again, on the monotonic clock.

        One that is due and has not been made again can't be now, be it that the policy is missing or the object.
        """
        soonest = self._clock.monotonic() + SHORTEST
        due = (proof.until for proof in self._known.values() if proof.asset == key)
        return min((max(moment, soonest) for moment in due), default=None)

    def forget(self, place: Place) -> None:
        """Nobody asks about this place any more."""
        self._known.pop(place, None)
        self._turns.pop(place, None)

    def doubt(self) -> None:
        """The policy has changed: try everything anew."""
        now = self._clock.monotonic()
        self._known = {place: dataclasses.replace(proof, until=now) for place, proof in self._known.items()}

    def _remember(self, place: Place, problem: str | None, key: AssetKey) -> None:
        """Believe it for as long as the policy has been as it is: a change takes a moment to be in force."""
        now = self._clock.monotonic()
        longest = LONGEST_DOUBT if problem else LONGEST
        until = now + min(longest, max(SHORTEST, now - self._policies.since))
        self._known[place] = _Proof(problem, until, key)

    async def _try(self, place: Place, resource: Resource, trial: ObservedTarget) -> str | None:
        service = f"{resource.version}.{resource.group}"
        if resource.group and await self._is_served_elsewhere(service):
            return (
                f"{place.kind} objects can't be fenced: {resource.api_version} is served by another API server "
                f"(APIService {service}), which this one's policies have no say in"
            )
        if await self._is_refused(place, resource, trial):
            return None
        return (
            f"{place.kind} objects in {place.namespace or 'the cluster'} can't be fenced: the API server let a trial "
            f"write (a dry run) through that the policy {names.TARGETS_POLICY} must refuse. Leases and "
            "admission's own policies never meet it; a policy that was just installed needs a second"
        )

    async def _is_served_elsewhere(self, service: str) -> bool:
        """Whether an aggregated API server has the kind. It is not tried: it may take a dry run seriously."""
        try:
            found = await self._api.get(API_SERVICES, None, service)
        except NotFound:
            return False
        return bool(found.get("spec", {}).get("service"))

    async def _is_refused(self, place: Place, resource: Resource, trial: ObservedTarget) -> bool:
        name, uid, version = trial.target.name or "", trial.uid or "", trial.resource_version
        for left in range(_TRIES - 1, -1, -1):
            try:
                patch = _planting(uid, version)
                await self._api.merge_patch(resource, place.namespace, name, patch, dry_run=True)
            except Conflict:
                if not left:
                    raise
                live = await self._api.get(resource, place.namespace, name, metadata_only=True)
                uid, version = live["metadata"]["uid"], live["metadata"]["resourceVersion"]
            except ApiError as error:
                if isinstance(error, Forbidden) and f"'{names.TARGETS_POLICY}'" in error.message:
                    return True
                if not error.is_refusal:
                    raise
                raise NotTried(f"{place.kind} {name} can't be stamped: {error}") from error
            else:
                return False
        raise AssertionError("unreachable")


def _planting(uid: str, version: str) -> dict[str, object]:
    return {
        "metadata": {
            "uid": uid,
            "resourceVersion": version,
            "labels": {names.FENCED_LABEL: "true"},
            "annotations": {names.PROBE_KEY: str(Stamp(uid, ()))},
        }
    }
