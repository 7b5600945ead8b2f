"""What is known of an asset and its Lease, read from plain objects without trusting their shape."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from assetlock.admission.review import Object, annotations_of, mapping, metadata_of, text
from assetlock.core import names
from assetlock.core.identity import NOBODY, QUARANTINE, Identity, owner_of
from assetlock.core.messages import HeldBy
from assetlock.model.selector import LabelSelector
from assetlock.model.subject import Subject

_FIRST_YEAR = 1900


@dataclasses.dataclass(frozen=True, slots=True)
class KnownHolder:
    """A holder as an Asset's status has it. ``writers`` may write: it, or its maintainers."""

    identity: Identity
    told: HeldBy
    writers: tuple[Identity, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class KnownTarget:
    """A target as an Asset has it: by name or by selector, and in its own namespace where it has none."""

    api_version: str
    kind: str
    namespace: str
    name: str = ""
    selector: LabelSelector | None = None

    @property
    def group(self) -> str:
        """The API group; empty for the core."""
        return self.api_version.rpartition("/")[0]


@dataclasses.dataclass(frozen=True, slots=True)
class AssetFacts:
    """The parts of an Asset that answers are made of.

    ``warns``: others' writes are dropped, not refused. ``unfenced``: why a lock does not protect all of its targets.
    """

    token: int
    holders: tuple[KnownHolder, ...]
    default_ttl: str | None = None
    warns: bool = False
    capacity: int = 1
    exempt: tuple[str, ...] = ()
    targets: tuple[KnownTarget, ...] = ()
    unfenced: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class LeaseFacts:
    """The parts of a labelled Lease that answers are made of."""

    holder: str
    owner: Identity
    lock: str | None
    pod: str | None
    seconds: int | None
    acquired: datetime.datetime | None
    renewed: datetime.datetime | None
    transitions: int

    def expires(self, default: datetime.timedelta) -> datetime.datetime | None:
        """When the present term ends; unknown without a renewTime."""
        if self.renewed is None:
            return None
        own = datetime.timedelta(seconds=self.seconds) if self.seconds is not None else default
        return self.renewed + min(own, datetime.timedelta(days=1))

    def told(self, default: datetime.timedelta) -> HeldBy:
        """The holder, for a message."""
        return HeldBy(
            self.owner.username,
            self.pod or self.owner.pod_uid,
            self.owner.credential_id,
            self.acquired,
            self.expires(default),
        )


def asset_facts(asset: Object) -> AssetFacts:
    """What an Asset says."""
    status, spec = mapping(asset.get("status")), mapping(asset.get("spec"))
    holders = status.get("holders")
    mark = status.get("fencingToken")
    tokens = (
        [_whole(mapping(item).get("fencingToken")) for item in holders] if isinstance(holders, list) else []
    )
    return AssetFacts(
        token=max(filter(None, tokens), default=mark if isinstance(mark, int) else 0),
        holders=tuple(_holder(mapping(item)) for item in holders) if isinstance(holders, list) else (),
        default_ttl=text(spec.get("defaultTTL")) or None,
        warns=spec.get("onConflict") == "Warn",
        capacity=_whole(spec.get("capacity")) or 1,
        exempt=tuple(text(item) for item in listed(spec.get("exempt"))),
        targets=tuple(
            _target(mapping(item), text(metadata_of(asset).get("namespace")))
            for item in listed(spec.get("targets"))
        ),
        unfenced=_unfenced(status) if listed(spec.get("targets")) else "",
    )


def listed(value: object) -> list[object]:
    """The value if it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else []


def lease_facts(lease: Object) -> LeaseFacts:
    """What a Lease says."""
    spec, annotations = mapping(lease.get("spec")), annotations_of(lease)
    return LeaseFacts(
        holder=text(spec.get("holderIdentity")),
        owner=owner_of(annotations),
        lock=annotations.get(names.LOCK_ANNOTATION),
        pod=annotations.get(names.POD_ANNOTATION),
        seconds=_whole(spec.get("leaseDurationSeconds")),
        acquired=moment(spec.get("acquireTime")),
        renewed=moment(spec.get("renewTime")),
        transitions=_whole(spec.get("leaseTransitions")) or 0,
    )


def moment(value: object) -> datetime.datetime | None:
    """A time as Kubernetes writes it; ``None`` for anything else, and for one too far off to reckon with."""
    try:
        read = datetime.datetime.fromisoformat(text(value))
        utc = read.astimezone(datetime.UTC) if read.tzinfo else read.replace(tzinfo=datetime.UTC)
    except (ValueError, OverflowError):
        return None
    return utc if _FIRST_YEAR < utc.year < datetime.MAXYEAR else None


def seconds_until(holders: Sequence[HeldBy], now: datetime.datetime, *, longest: int) -> int:
    """When trying again may help: the first holder's end, within a minute or so."""
    ends = [holder.until for holder in holders if holder.until is not None]
    if not ends:
        return longest
    return max(1, min(longest, math.ceil((min(ends) - now).total_seconds())))


def _unfenced(status: Object) -> str:
    for condition in map(mapping, listed(status.get("conditions"))):
        if (condition.get("type"), condition.get("status")) == ("Fenced", "False"):
            return text(condition.get("message"))
    return ""


def _target(fields: Object, namespace: str) -> KnownTarget:
    try:
        selector = LabelSelector.model_validate(fields["selector"]) if "selector" in fields else None
    except ValidationError:
        selector = None
    return KnownTarget(
        text(fields.get("apiVersion")),
        text(fields.get("kind")),
        text(fields.get("namespace")) or namespace,
        text(fields.get("name")),
        selector,
    )


def _holder(fields: Object) -> KnownHolder:
    identity = Identity(
        text(fields.get("identity")) or NOBODY.username,
        text(fields.get("podUID")) or None,
        text(fields.get("credentialId")) or None,
    )
    maintenance = text(fields.get("mode")) == "Maintenance"
    return KnownHolder(
        identity,
        HeldBy(
            identity.username,
            text(fields.get("podName")) or identity.pod_uid,
            identity.credential_id,
            moment(fields.get("acquireTime")),
            moment(fields.get("expireTime")),
            text(fields.get("reason")) or None,
            maintenance=maintenance,
            quarantined=identity == QUARANTINE,
        ),
        _writers(identity, fields.get("maintainers")) if maintenance else (identity,),
    )


def _writers(identity: Identity, maintainers: object) -> tuple[Identity, ...]:
    """As in a stamp: who closed the asset stands there too, but as nobody who could write."""
    return (Identity.closing(identity.username, None), *_subjects(maintainers))


def _subjects(subjects: object) -> Iterator[Identity]:
    for subject in subjects if isinstance(subjects, list) else ():
        try:
            yield Identity.of(Subject.model_validate(subject))
        except ValueError:
            continue


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
