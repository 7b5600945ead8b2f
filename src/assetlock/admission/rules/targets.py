"""Decides writes to targets: who the stamps name may write, everybody else is told who that is.

The stamps on the object are what counts, as for the policy behind: what is known of the assets only makes
the answer readable. A stamp that an admitted write would drop or change is put back, so that a holder's
``kubectl replace`` or ``rollout undo`` goes through with its content.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence

from assetlock.admission import facts, verdict
from assetlock.admission.review import Object, Review, annotations_of, labels_of, metadata_of
from assetlock.admission.rules import changes, controllers
from assetlock.admission.verdict import Admitted, Dropped, PatchOperation, Refused
from assetlock.core import messages, names
from assetlock.core.fence.stamp import Stamp, StampedHolder
from assetlock.core.identity import Identity
from assetlock.model.asset import BrokenGlass
from assetlock.model.limits import LONGEST_USERNAME, MOST_ANNOTATIONS

RETRY_WHILE_FREEING = 1
LONGEST_RETRY = 60


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """An asset's stamp on this very object. ``stamp`` is ``None`` if it can't be read: it admits nobody."""

    key: str
    text: str
    stamp: Stamp | None

    @property
    def asset(self) -> str:
        """The name of the asset."""
        return self._claimant[1]

    @property
    def namespace(self) -> str:
        """The namespace of the asset."""
        return self._claimant[0]

    @property
    def _claimant(self) -> tuple[str, str]:
        return names.claimant(self.key) or ("", "")


def claims_on(review: Review) -> tuple[Claim, ...]:
    """The stamps that fence the object as it is now."""
    return _claims(review.old, _uid(review))


def claim_of(asset: str, namespace: str, known: facts.AssetFacts) -> Claim:
    """The claim of an asset that is locked, as its stamp would have it, on what carries none."""
    holders = tuple(StampedHolder(known.token, who) for holder in known.holders for who in holder.writers)
    closed = any(holder.told.maintenance for holder in known.holders)
    stamp = Stamp("", holders, () if closed else known.exempt)
    return Claim(names.stamp_key(asset, namespace), str(stamp), stamp)


def admits(review: Review, claims: Sequence[Claim]) -> bool:
    """Whether the write may go through."""
    return names.BREAK_GLASS_GROUP in review.requester.groups or _is_open(review, claims)


def breaks_glass(review: Review, claims: Sequence[Claim]) -> bool:
    """Whether nothing but the group for emergencies lets the write through."""
    return names.BREAK_GLASS_GROUP in review.requester.groups and not _is_open(review, claims)


def broken_glass(review: Review, now: datetime.datetime) -> BrokenGlass:
    """What is to be shown of such a write."""
    return BrokenGlass(
        identity=review.requester.username[:LONGEST_USERNAME],
        time=now.replace(microsecond=0),
        operation="DELETE" if review.operation == "DELETE" else "UPDATE",
        kind=review.kind,
        name=review.name,
        namespace=review.namespace or None,
    )


def _is_open(review: Review, claims: Sequence[Claim]) -> bool:
    """Whether the requester, or the write, is one that the lock does not stand against."""
    if holds(review, claims):
        return True
    if review.operation == "UPDATE" and (controllers.may_update(review) or _may_update(review, claims)):
        return True
    return changes.none(review) or changes.status_alone(review) or changes.finishes_deletion(review)


def holds(review: Review, claims: Sequence[Claim]) -> bool:
    """Whether every claiming asset names the requester as a holder."""
    return all(
        claim.stamp is not None
        and any(review.requester.is_one_with(holder.identity) for holder in claim.stamp.holders)
        for claim in claims
    )


def refusing(review: Review, claims: Sequence[Claim]) -> list[Claim]:
    """The claims that stand against an update."""
    return [claim for claim in claims if not _may_update(review, [claim])]


def _may_update(review: Review, claims: Sequence[Claim]) -> bool:
    """Whether every claiming asset names the requester as a holder or exempts it."""
    return all(
        holds(review, [claim])
        or (claim.stamp is not None and review.requester.username in claim.stamp.exempt)
        for claim in claims
    )


def admitted(review: Review, claims: Sequence[Claim]) -> Admitted:
    """Let the write through, with our label and stamps as they were."""
    if review.operation != "UPDATE" or names.BREAK_GLASS_GROUP in review.requester.groups:
        return Admitted()
    after = annotations_of(review.new)
    wanted: dict[str, str | None] = {claim.key: claim.text for claim in claims}
    labels: tuple[PatchOperation, ...] = ()
    if claims:
        labels = verdict.changes(
            ("metadata", "labels"), _map(review.new, "labels"), {names.FENCED_LABEL: "true"}
        )
    forged = [claim.key for claim in _claims(review.new, _uid(review)) if claim.key not in wanted]
    wanted |= dict.fromkeys(forged)
    if not wanted or all(after.get(key) == value for key, value in wanted.items()):
        return Admitted(labels)
    return Admitted(
        labels + verdict.changes(("metadata", "annotations"), _map(review.new, "annotations"), wanted)
    )


def refused(
    review: Review,
    claims: Sequence[Claim],
    assets: Mapping[tuple[str, str], facts.AssetFacts | None],
    now: datetime.datetime,
) -> Refused:
    """Say who holds the object, through the first asset whose holder the requester is not."""
    claim = next(claim for claim in claims if not holds(review, [claim]))
    asset = assets.get((claim.namespace, claim.asset))
    if asset is not None and not asset.holders and claim.stamp is not None and claim.stamp.holders:
        message = messages.ending(review.title, claim.asset, claim.namespace)
        return verdict.locked(message, retry_after=RETRY_WHILE_FREEING)
    holders = holders_of(claim, asset)
    message = messages.locked(review.title, claim.asset, claim.namespace, holders, now)
    if (claim.namespace, claim.asset) in assets and asset is None:
        message = messages.orphaned(review.title, claim.asset, claim.namespace, holders)
    others = [other for other in claims if other is not claim and not holds(review, [other])]
    if others:
        more = ", ".join(f"{other.namespace}/{other.asset}" for other in others[: messages.MOST_HOLDERS])
        message += f". Also locked through {more}"
    return verdict.locked(
        message,
        causes=tuple(str(holder) for holder in holders[: messages.MOST_HOLDERS]),
        retry_after=facts.seconds_until(holders, now, longest=LONGEST_RETRY),
    )


def dropped(
    review: Review,
    claims: Sequence[Claim],
    assets: Mapping[tuple[str, str], facts.AssetFacts | None],
    refusal: Refused,
) -> Dropped | None:
    """Let an update through with nothing left of it, if every asset that refuses it is in ``Warn`` mode.

    ``None`` where it has to be refused: what is deleted can't be put back, nor what is not known as a whole.
    """
    known = (assets.get((claim.namespace, claim.asset)) for claim in refusing(review, claims))
    if review.operation != "UPDATE" or not review.is_whole:
        return None
    if not all(asset is not None and asset.warns for asset in known):
        return None
    if any(holds(review, [claim]) for claim in claims):
        return (
            None  # To whoever holds the object through another asset a write that vanishes would be a trap.
        )
    return Dropped(changes.undone(review), (messages.dropped(refusal.message),))


def is_current(claim: Claim, asset: facts.AssetFacts | None) -> bool:
    """Whether what is known of the asset belongs to this stamp."""
    return asset is not None and claim.stamp is not None and asset.token == claim.stamp.token


def holders_of(claim: Claim, asset: facts.AssetFacts | None) -> list[messages.HeldBy]:
    """Who holds a claim, as far as it is known: from the asset if that is of the claim's time."""
    if asset is not None and asset.holders and (is_current(claim, asset) or claim.stamp is None):
        return [holder.told for holder in asset.holders]
    stamped = claim.stamp.told if claim.stamp is not None else ()
    return [_stamped(holder.identity) for holder in stamped]


def _stamped(identity: Identity) -> messages.HeldBy:
    if identity.is_closing:
        return messages.HeldBy(identity.username, maintenance=True)
    return messages.HeldBy(identity.username, identity.pod_uid, identity.credential_id)


def _claims(thing: Object, uid: str) -> tuple[Claim, ...]:
    annotations = annotations_of(thing)
    if labels_of(thing).get(names.FENCED_LABEL) != "true" or len(annotations) > MOST_ANNOTATIONS:
        return ()
    found = []
    for key, text in sorted(annotations.items()):
        if key.endswith(names.STAMP_SUFFIX) and text.split("\n", 1)[0] == uid:
            found.append(Claim(key, text, _parsed(text)))
    return tuple(found)


def _parsed(text: str) -> Stamp | None:
    try:
        return Stamp.parse(text)
    except ValueError:
        return None


def _uid(review: Review) -> str:
    return str(metadata_of(review.old or review.new).get("uid") or "")


def _map(thing: Object, field: str) -> Mapping[str, str] | None:
    found = metadata_of(thing).get(field)
    return found if isinstance(found, dict) else None
