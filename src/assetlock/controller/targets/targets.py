"""The objects that assets stand for, and those that still carry an asset's stamp.

A watch is started when the first asset claims such an object, by name or by labels, or lists its kind and namespace
as a place where its stamps may be. It is kept until no asset does and no object carries a stamp: so objects which an
asset no longer claims, but which are still fenced by it, are found, whoever has fenced them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from assetlock.controller.clock import Clock
from assetlock.controller.keys import AssetKey
from assetlock.controller.targets.claims import Claim, Claims, Place, stamping
from assetlock.controller.targets.ended_stamps import EndedStamps
from assetlock.controller.targets.fence_policies import FencePolicies
from assetlock.controller.targets.fence_probe import FenceProbe, NotTried
from assetlock.controller.targets.objects import Raw, Selectors, annotations_of
from assetlock.controller.targets.problems import Problems
from assetlock.controller.targets.watches import Unwatchable, Watched, Watches
from assetlock.core import names
from assetlock.core.observation import ObservedTarget
from assetlock.core.selection import described, selects
from assetlock.kube.api import Api
from assetlock.kube.discovery import Discovery
from assetlock.kube.errors import KindNotFound, KubeError
from assetlock.kube.resources import Resource, group_of
from assetlock.model.asset import MOST_SELECTED, Asset, FencedPlace, Target
from assetlock.model.selector import LabelSelector


class Targets:
    """Knows every target's metadata, and calls ``changed`` with the assets that a change concerns.

    Whether the fence is in force is not tried without ``trials``: for those who only take it down, or whom it
    lets through.
    """

    def __init__(
        self,
        api: Api,
        discovery: Discovery,
        clock: Clock,
        changed: Callable[[AssetKey], None],
        *,
        trials: bool = True,
    ) -> None:
        self._api = api
        self._discovery = discovery
        self._clock = clock
        self._changed = changed
        self._trials = trials
        self._claims = Claims()
        self._problems = Problems(clock)
        self._policies = FencePolicies(api, clock, self._policies_changed)
        self._probe = FenceProbe(
            api, clock, self._policies, lambda place: self._tell(self._claims.in_place(place))
        )
        self._watches = Watches(api, clock, self._object_changed)
        self._ended = EndedStamps(api)
        self._resources: dict[tuple[str, str], Resource] = {}

    async def observe(self, key: AssetKey, asset: Asset | None) -> tuple[ObservedTarget, ...]:
        """The asset's targets, and strays with its stamp; waits for watches that have only begun.

        A target that a selector stands for is one object; one that selects nothing has no UID.
        Raises ApiError when the API server can't say which kinds there are.
        """
        claimed = asset.spec.targets if asset else []
        claims: set[Claim] = set()
        found = [each for by in claimed for each in await self._observe_claimed(key, by, claims)]
        wanted = _each_once(found)
        unseen = await self._observe_listed(key, asset.status.fenced_places, claims) if asset else []
        self._deselect(self._claims.keep(key, claims))
        known = {each.uid for each in wanted if each.uid}
        copies = asset is None or not asset.status.holders
        strays = [
            self._unless_problem(key, stray)
            for stray in self._strays(key, copies=copies)
            if stray.uid not in known and not any(_is_claimed(stray, by, key.namespace) for by in claimed)
        ]
        self._problems.keep(key, {*claimed, *(each.target for each in (*wanted, *strays, *unseen))})
        return (*wanted, *strays, *unseen)

    async def disown(self, stamp_key: str, found: ObservedTarget) -> None:
        """Take in that an ended lock's stamp can't be taken off this object: from now on it stands against nobody."""
        if found.uid and stamp_key in found.annotations:
            await self._ended.note(stamp_key, found.uid, found.annotations[stamp_key])

    async def sweep(self) -> None:
        """Forget about those stamps that are gone by now."""
        await self._ended.sweep({stamp for watched in self._watches for stamp in watched.objects.stamps()})

    def not_served(self, target: Target) -> None:
        """Take in that the kind is not served in the version that was known: look which is, next time."""
        self._discovery.forget_kind(target.api_version, target.kind)

    def problem(self, key: AssetKey, target: Target, message: str) -> None:
        """Remember for a while why this target can't be fenced."""
        self._problems.remember(key, target, message)

    def recheck_at(self, key: AssetKey) -> float | None:
        """When the first of what is known about the asset's targets is worth another try, on the monotonic clock."""
        moments = (self._problems.recheck_at(key), self._probe.recheck_at(key))
        return min((moment for moment in moments if moment is not None), default=None)

    def resource_of(self, target: Target) -> Resource:
        """The API resource of a target that was observed before."""
        return self._resources[group_of(target.api_version), target.kind]

    def place_of(self, target: Target, asset_namespace: str) -> str | None:
        """The namespace a target lives in; ``None`` for cluster-scoped kinds."""
        return (target.namespace or asset_namespace) if self.resource_of(target).namespaced else None

    def put(
        self, target: Target, namespace: str | None, raw: Raw | None, *, by: AssetKey | None = None
    ) -> None:
        """Take in a live read of a named target, or the answer to a write; ``None`` when there is none.

        Other assets than the one it was done ``by`` are told what its stamp means to them: the watch has nothing new.
        """
        place = Place(group_of(target.api_version), target.kind, namespace)
        watched, name = self._watches.get(place), target.name or ""
        if watched is None:
            return
        before, known = watched.objects.selecting(name), watched.objects.by_name.get(name)
        if raw is None:
            watched.objects.drop(name)
        else:
            watched.objects.put(raw)
        after = watched.objects.selecting(name)
        if known and raw and annotations_of(known) != annotations_of(raw):
            self._tell(self._claims.on(place, name, before | after) - {by})
        elif after != before:
            self._tell(self._claims.on(place, name, before ^ after))

    def retire(self, assets: Collection[AssetKey]) -> None:
        """Stop the watches that none of the assets that there are needs."""
        self._deselect(self._claims.keep_assets(assets))
        for watched in self._watches:
            if not self._claims.is_claimed(watched.place) and not watched.objects.any_stamped:
                self._watches.stop(watched.place)
                self._probe.forget(watched.place)

    async def close(self) -> None:
        """Stop all watches."""
        await self._watches.close()
        await self._policies.close()

    async def _observe_claimed(
        self, key: AssetKey, target: Target, claims: set[Claim]
    ) -> Sequence[ObservedTarget]:
        """The object that a target names, or those that it selects; ``claims`` takes what is claimed."""
        problem = self._problems.current(key, target)
        if problem:
            return [ObservedTarget(target, problem=problem)]
        try:
            watched = await self._watch(key, target, target.selector or target.name or "", claims)
        except (KindNotFound, Unwatchable) as error:
            self.problem(key, target, str(error))
            return [ObservedTarget(target, problem=str(error))]
        if target.selector is None:
            raw = watched.objects.by_name.get(target.name or "")
            found = [watched.observed(target, raw)]
        else:
            selected = self._selected(key, target, target.selector, watched)
            found = [self._unless_problem(key, each) for each in selected]
        nothing = ObservedTarget(target, namespace=watched.place.namespace)
        return await self._proven(key, watched, found) or [nothing]

    async def _observe_listed(
        self, key: AssetKey, listed: Iterable[FencedPlace], claims: set[Claim]
    ) -> list[ObservedTarget]:
        """Have the places watched in which the asset's stamps may be; gives those where nobody can look for now."""
        claimed = {place for place, _ in claims}
        looked = [
            await self._observe_place(key, each, claims)
            for each in listed
            if Place(group_of(each.api_version), each.kind, each.namespace) not in claimed
        ]
        return [unseen for unseen in looked if unseen]

    async def _observe_place(
        self, key: AssetKey, place: FencedPlace, claims: set[Claim]
    ) -> ObservedTarget | None:
        """All that is in a place, if it can't be looked at. Of a kind that is not served there is nothing."""
        target = Target(api_version=place.api_version, kind=place.kind, namespace=place.namespace)
        problem = self._problems.current(key, target)
        if problem is None:
            try:
                await self._watch(key, target, None, claims)
            except KindNotFound:
                return None
            except (KubeError, Unwatchable) as error:
                problem = str(error)
                self.problem(key, target, problem)
        return ObservedTarget(target, problem=problem, wanted=False) if problem else None

    async def _watch(
        self, key: AssetKey, target: Target, what: str | LabelSelector | None, claims: set[Claim]
    ) -> Watched:
        """The objects where a target is, of which the asset claims these: ``claims`` takes that."""
        resource = await self._discovery.stored_as(target.api_version, target.kind)
        self._resources[resource.group, target.kind] = resource
        place = Place(resource.group, target.kind, self.place_of(target, key.namespace))
        claim: Claim = (place, what)
        claims.add(claim)
        self._claims.add(key, claim)
        return await self._watches.synced(place, resource)

    async def _proven(
        self, key: AssetKey, watched: Watched, found: list[ObservedTarget]
    ) -> list[ObservedTarget]:
        """The objects, with what is wrong if the API server does not enforce the fence where they are."""
        trial = next((each for each in found if each.uid), None)
        if trial is None or not self._trials:
            return found
        try:
            problem = await self._probe.problem(key, watched.place, watched.resource, trial)
        except NotTried as error:
            self.problem(key, trial.target, str(error))
            return [self._unless_problem(key, each) for each in found]
        return [dataclasses.replace(each, problem=problem) if problem else each for each in found]

    def _selected(
        self, key: AssetKey, target: Target, selector: LabelSelector, watched: Watched
    ) -> list[ObservedTarget]:
        """What is selected; if that is too much, those of it that are stamped already, and what is wrong."""
        watched.objects.select(selector)
        raws, problem = watched.objects.selected(selector), []
        if len(raws) > MOST_SELECTED:
            message = (
                f"{len(raws)} {target.kind} objects are selected by {described(selector)}; "
                f"at most {MOST_SELECTED} are fenced: narrow the selector, or make several assets of them"
            )
            problem = [ObservedTarget(target, problem=message)]
            stamp = names.stamp_key(key.name, key.namespace)
            raws = [raw for raw in raws if stamp in annotations_of(raw)]
        named = ((target.model_copy(update={"name": _name(raw), "selector": None}), raw) for raw in raws)
        return [*problem, *(watched.observed(each, raw) for each, raw in named)]

    def _unless_problem(self, key: AssetKey, found: ObservedTarget) -> ObservedTarget:
        """An object whose problem stands is not looked at: it would only be tried again."""
        problem = self._problems.current(key, found.target)
        return ObservedTarget(found.target, problem=problem, wanted=found.wanted) if problem else found

    def _strays(self, key: AssetKey, *, copies: bool) -> Iterator[ObservedTarget]:
        """Objects with the asset's stamp; on request also those that only a controller has copied it to."""
        stamp = names.stamp_key(key.name, key.namespace)
        for watched in self._watches:
            place = watched.place
            for raw in watched.objects.stamped_with(stamp):
                if copies or key in stamping(raw["metadata"]["uid"], annotations_of(raw)):
                    target = Target(
                        api_version=watched.resource.api_version,
                        kind=place.kind,
                        name=_name(raw),
                        namespace=place.namespace,
                    )
                    yield watched.observed(target, raw, wanted=False)

    def _object_changed(self, place: Place, name: str, selecting: Selectors, raw: Raw | None) -> None:
        stamped = stamping(raw["metadata"]["uid"], annotations_of(raw)) if raw else ()
        self._tell(self._claims.on(place, name, selecting) | set(stamped))

    def _policies_changed(self) -> None:
        self._probe.doubt()
        self._tell(self._claims.assets())

    def _tell(self, assets: Iterable[AssetKey]) -> None:
        for key in assets:
            self._changed(key)

    def _deselect(self, unclaimed: Iterable[Claim]) -> None:
        for place, what in unclaimed:
            watched = self._watches.get(place)
            if watched is not None and isinstance(what, LabelSelector):
                watched.objects.deselect(what)


def _name(raw: Raw) -> str:
    return str(raw["metadata"]["name"])


def _each_once(found: Iterable[ObservedTarget]) -> list[ObservedTarget]:
    """Objects that are named and selected, or selected twice, only once."""
    once: dict[str | Target, ObservedTarget] = {}
    for each in found:
        once.setdefault(each.uid or each.target, each)
    return list(once.values())


def _is_claimed(found: ObservedTarget, by: Target, asset_namespace: str) -> bool:
    """Whether an asset claims this object, be it through a target that is not looked at for a while."""
    target = found.target
    if (group_of(target.api_version), target.kind) != (group_of(by.api_version), by.kind):
        return False
    if target.namespace not in (None, by.namespace or asset_namespace):
        return False
    return selects(by.selector, found.labels) if by.selector else target.name == by.name
