"""What happens to a review on each path: decide, look up what the decision needs, decide again."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import logging
from collections.abc import Callable, Mapping, Sequence

from assetlock.admission import metrics, verdict
from assetlock.admission.access import Access, Unanswered
from assetlock.admission.asset_cache import AssetCache
from assetlock.admission.ended_stamps import EndedStamps
from assetlock.admission.facts import AssetFacts
from assetlock.admission.notices import Notices
from assetlock.admission.review import Review
from assetlock.admission.rules import assetlocks as assetlock_rules
from assetlock.admission.rules import assets as asset_rules
from assetlock.admission.rules import changes
from assetlock.admission.rules import creations as creation_rules_
from assetlock.admission.rules import definitions as definition_rules
from assetlock.admission.rules import leases as lease_rules
from assetlock.admission.rules import namespaces as namespace_rules
from assetlock.admission.rules import subresources as subresource_rules
from assetlock.admission.rules import targets as target_rules
from assetlock.admission.rules import windows as window_rules
from assetlock.admission.settings import AdmissionSettings
from assetlock.admission.upkeep.activity import ActivityRecorder
from assetlock.admission.upkeep.evidence import MadeWrites
from assetlock.admission.verdict import Admitted, Refused, Verdict
from assetlock.core import names
from assetlock.kube.errors import KubeError
from assetlock.kube.recorder import EventRecorder
from assetlock.model.durations import parse_duration

log = logging.getLogger(__name__)


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@dataclasses.dataclass(frozen=True, slots=True)
class Webhooks:
    """The webhooks, and what they decide from."""

    settings: AdmissionSettings
    view: AssetCache
    access: Access
    activity: ActivityRecorder
    made: MadeWrites
    ended: EndedStamps
    events: EventRecorder
    now: Callable[[], datetime.datetime] = _now

    @property
    def notices(self) -> Notices:
        """What to warn of."""
        return Notices(self.view, self.access)

    async def fence(self, review: Review) -> Verdict:
        """A write to a target."""
        claims = self.ended.without(target_rules.claims_on(review))
        if target_rules.admits(review, claims):
            self._note(review, claims)
            return target_rules.admitted(review, claims)
        assets = await self._assets_of(claims)
        return self._refused_or_dropped(
            review, claims, assets, target_rules.refused(review, claims, assets, self.now())
        )

    async def subresources(self, review: Review) -> Verdict:
        """Scaling a target, evicting it, or looking inside."""
        claims = subresource_rules.claims_on(review, await self.view.annotations_of(review.namespace))
        if subresource_rules.admits(review, claims):
            self._note(review, claims)
            return Admitted()
        assets = await self._assets_of(claims)
        return self._refused_or_dropped(
            review, claims, assets, subresource_rules.refused(review, claims, assets, self.now())
        )

    async def namespaces(self, review: Review) -> Verdict:
        """A change of a guarded namespace, or its deletion."""
        if review.operation != "DELETE":
            return namespace_rules.kept(review)
        there = await self.view.locked_in(review.name)
        claims = namespace_rules.claims_on(review, there)
        if namespace_rules.admits(review, claims):
            self._note(review, claims)
            return Admitted()
        elsewhere = [claim for claim in claims if claim.namespace != review.name]
        assets = {(review.name, name): asset for name, asset in there.items()}
        return namespace_rules.refused(review, claims, assets | await self._assets_of(elsewhere), self.now())

    async def creations(self, review: Review) -> Verdict:
        """A new object, of a kind that there are targets of."""
        known = self.view.locked_with(review.group, review.kind)
        claims = creation_rules_.claims_on(review, known)
        if not claims:
            return Admitted()
        live = {(one.namespace, one.asset): await self._read(one.namespace, one.asset) for one in claims}
        claims = creation_rules_.claims_on(review, {key: asset for key, asset in live.items() if asset})
        if creation_rules_.admits(review, claims):
            self._note(review, claims)
            return Admitted()
        return target_rules.refused(review, claims, live, self.now())

    async def definitions(self, review: Review) -> Verdict:
        """The deletion of a custom resource's definition, which takes all objects of the kind along."""
        known = self.view.locked_with(*definition_rules.kind_of(review))
        live = {key: await self._read(*key) for key in known}
        claims = [
            target_rules.claim_of(key[1], key[0], asset)
            for key, asset in live.items()
            if asset and asset.holders
        ]
        if definition_rules.admits(review, claims):
            self._note(review, claims)
            return Admitted()
        return target_rules.refused(review, claims, live, self.now())

    async def assets(self, review: Review) -> Verdict:
        """A write to an Asset."""
        refusal = asset_rules.locked(review, self.now())
        if refusal is not None:
            return refusal
        targets = asset_rules.new_targets(review)
        try:
            denied = await self.access.not_updatable(review.requester, targets)
        except Unanswered as error:
            return verdict.unavailable(str(error))
        decided = asset_rules.decided(review, denied)
        notices = await self.notices.of_targets(targets, asset_rules.all_targets(review)) if targets else ()
        return verdict.warned(decided, notices)

    async def assetlocks(self, review: Review) -> Verdict:
        """A new AssetLock, or a change of one."""
        decided = assetlock_rules.decide(review, self.settings.longest_ttl, self.now())
        if review.operation != "CREATE" or isinstance(decided, Refused):
            return decided
        return verdict.warned(decided, await self.notices.of_lock(review))

    async def leases(self, review: Review) -> Verdict:
        """A write to a Lease that is a lock."""
        asset = lease_rules.asset_of(review)
        may_unlock = lease_rules.needs_unlock(review) and await self.access.may_unlock(
            review.requester, review.namespace, asset
        )
        known = self.view.known(review.namespace, asset)
        terms = lease_rules.Terms(
            now=self.now(),
            default_ttl=self._default_ttl(known),
            capacity=known.capacity if known else None,
            skew=parse_duration(self.settings.skew),
            may_unlock=may_unlock,
        )
        decided = lease_rules.decide(review, terms)
        return verdict.warned(decided, await self.notices.of_lease(review, asset))

    def _refused_or_dropped(
        self,
        review: Review,
        claims: Sequence[target_rules.Claim],
        assets: Mapping[tuple[str, str], AssetFacts | None],
        refusal: Refused,
    ) -> Verdict:
        dropped = target_rules.dropped(review, claims, assets, refusal)
        if dropped is None:
            return refusal
        self._tell_of_drop(review, target_rules.refusing(review, claims))
        return dropped

    async def _assets_of(
        self, claims: Sequence[target_rules.Claim]
    ) -> dict[tuple[str, str], AssetFacts | None]:
        """Those that can be read now or were seen before; ``None`` for what does not exist."""
        found: dict[tuple[str, str], AssetFacts | None] = {}
        for claim in claims:
            with contextlib.suppress(KubeError):
                found[claim.namespace, claim.asset] = await self._asset_of(claim)
        return found

    async def windows(self, review: Review) -> Verdict:
        """A new MaintenanceWindow, or a change of one."""
        decided = window_rules.decide(review, _now())
        return verdict.warned(decided, await self.notices.of_window(review))

    async def _asset_of(self, claim: target_rules.Claim) -> AssetFacts | None:
        """The claiming asset: from the cache if that is of the stamp's time, else read anew."""
        known = self.view.known(claim.namespace, claim.asset)
        if known is not None and known.holders and target_rules.is_current(claim, known):
            return known
        return await self._read(claim.namespace, claim.asset)

    async def _read(self, namespace: str, asset: str) -> AssetFacts | None:
        """An asset as it is now, or as it was last seen; raises `KubeError` if it was neither."""
        try:
            return await self.view.read(namespace, asset)
        except KubeError as error:
            log.warning("asset %s/%s could not be read: %s", namespace, asset, error)
            known = self.view.known(namespace, asset)
            if known is None:
                raise
            return known

    def _default_ttl(self, asset: AssetFacts | None) -> datetime.timedelta:
        if asset is None or not asset.default_ttl:
            return self.settings.default
        try:
            return min(parse_duration(asset.default_ttl), self.settings.longest)
        except ValueError:
            return self.settings.default

    def _note(self, review: Review, claims: Sequence[target_rules.Claim]) -> None:
        """Remember a holder's write, and one that went through by breaking the glass."""
        if review.dry_run or not claims:
            return
        if target_rules.holds(review, claims):
            if review.operation != "CONNECT" and not changes.none(review):
                self.made.once_made(review, lambda: self._note_activity(review, claims))
        elif target_rules.breaks_glass(review, claims):
            self.made.once_made(review, lambda: self._note_break_glass(review, claims))

    def _note_activity(self, review: Review, claims: Sequence[target_rules.Claim]) -> None:
        for claim in claims:
            self.activity.note_write(claim.namespace, claim.asset, review.requester)

    def _note_break_glass(self, review: Review, claims: Sequence[target_rules.Claim]) -> None:
        metrics.BREAK_GLASS.inc()
        broken = target_rules.broken_glass(review, self.now())
        for claim in claims:
            self.activity.note_break_glass(claim.namespace, claim.asset, broken)
            self._tell_of_break_glass(review, claim)

    def _tell_of_drop(self, review: Review, claims: Sequence[target_rules.Claim]) -> None:
        for claim in claims if not review.dry_run else ():
            note = f"dropped what {review.requester.username} wrote to {review.title}"
            self._tell(claim, "WriteDropped", note, review.operation)

    def _tell_of_break_glass(self, review: Review, claim: target_rules.Claim) -> None:
        note = (
            f"{review.requester.username} wrote to {review.title} through the lock "
            f"({review.operation}, as group {names.BREAK_GLASS_GROUP})"
        )
        self._tell(claim, "BrokeGlass", note, review.operation)

    def _tell(self, claim: target_rules.Claim, reason: str, note: str, operation: str) -> None:
        """An Event on the asset; the recorder makes series of equal ones, and limits the rate."""
        metadata = {"name": claim.asset, "namespace": claim.namespace}
        regarding = {"apiVersion": names.API_VERSION, "kind": "Asset", "metadata": metadata}
        self.events.record(regarding, reason, note, type="Warning", action=operation.capitalize())
