"""What AssetLocks, Leases and Assets say, as those who judge a schedule read it."""

import dataclasses
import datetime
from collections.abc import Iterator

from assetlock.core import names
from assetlock.model.durations import parse_duration
from tests.sim.store import Change, Json
from tests.sim.virtual import EPOCH

TERMINAL = frozenset({"Released", "Expired", "Revoked", "Failed", "Quarantined"})
FUTURE = 7200.0
"""No clock of those who write times is ahead by that many seconds; a client's own times may be by years."""


@dataclasses.dataclass(frozen=True, slots=True)
class Announced:
    """A holder that was told that it holds. `lock` is the AssetLock's name, if it is one; `alone`: Exclusive.

    `late`: it shares the asset, and was told when it had others too; meanwhile some may have come and gone.
    """

    acquisition: str
    user: str
    token: int
    lock: str | None
    alone: bool = False
    late: bool = False
    maintainers: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Term:
    """What a Lease records: whose it is and until when; not to be `believed` where admission has not set the times.

    Such a term counts from when a controller sees it first, hence `ends` no earlier than it says here.
    """

    acquisition: str
    ends: float
    user: str = ""
    renewed: float = 0.0
    withheld: bool = False
    believed: bool = True


def assets_of(lock: Json) -> list[str]:
    spec = lock["spec"]
    if "assetSelector" in spec:
        return sorted(one["name"] for one in lock.get("status", {}).get("assets") or ())
    return [spec["assetName"]] if "assetName" in spec else sorted(spec["assetNames"])


def is_pending(lock: Json) -> bool:
    """Whether it waits, perhaps unseen so far."""
    return state_of(lock) in (None, "Pending")


def announces(change: Change) -> bool:
    """Whether a commit of an AssetLock tells who asked that he holds."""
    before = state_of(change.old.obj) if change.old else None
    return change.new is not None and before != "Held" and state_of(change.obj) == "Held"


def state_of(lock: Json) -> str | None:
    """None until somebody has looked at it."""
    state: str | None = lock.get("status", {}).get("state")
    return state


def tokens_of(lock: Json) -> dict[str, int]:
    """The tokens that an AssetLock tells, by asset."""
    status = lock["status"]
    if "assetName" in lock["spec"]:
        return {lock["spec"]["assetName"]: status["fencingToken"]}
    return {one["name"]: one["fencingToken"] for one in status["assets"]}


def reason_of(lock: Json) -> str:
    """Why it ended."""
    return next(c["reason"] for c in lock["status"]["conditions"] if c["type"] == "Finished")


def maintainers_of(told: Json) -> tuple[str, ...]:
    """The users that a lock's spec, or a holder on an Asset, names beside the holder."""
    return tuple(subject["name"] for subject in told.get("maintainers") or ())


def acquisition_of(lock: Json) -> str:
    uid, attempt = lock["metadata"]["uid"], lock.get("status", {}).get("attempt")
    return f"{uid}.{attempt}" if attempt else str(uid)


def announced_by(lock: Json) -> Iterator[tuple[str, Announced]]:
    """Whom an AssetLock that is held makes a holder, asset for asset."""
    spec = lock["spec"]
    user, maintainers = spec["holder"]["username"], maintainers_of(spec)
    alone = spec.get("mode", "Exclusive") == "Exclusive"
    late = not alone and "assetName" not in spec
    name, acquisition = lock["metadata"]["name"], acquisition_of(lock)
    for asset, token in tokens_of(lock).items():
        yield asset, Announced(acquisition, user, token, name, alone, late, maintainers)


def content(obj: Json) -> object:
    return obj.get("data")


def seconds(text: str) -> float:
    return (datetime.datetime.fromisoformat(text) - EPOCH).total_seconds()


def made_at(obj: Json) -> float:
    return seconds(obj["metadata"]["creationTimestamp"])


def wait_over(lock: Json) -> float | None:
    """The latest moment at which its wait is over; `None` when it does not wait at all."""
    wait = parse_duration(lock["spec"].get("wait", "0s")).total_seconds()
    return made_at(lock) + 1.0 + wait if wait else None


def rank(lock: Json) -> tuple[int, str, str]:
    metadata = lock["metadata"]
    return (-lock["spec"].get("priority", 0), metadata["creationTimestamp"], metadata["uid"])


def term(change: Change, longest_hold: float) -> Term | None:
    """The term that a Lease records; none once it is being deleted."""
    if change.new is None or "deletionTimestamp" in change.new.obj["metadata"]:
        return None
    lease = change.new.obj
    spec = lease["spec"]
    if not spec.get("holderIdentity"):
        return None
    annotations = lease["metadata"].get("annotations", {})
    owner, withheld = (annotations.get(names.OWNER_ANNOTATION, ""), names.WITHHELD_ANNOTATION in annotations)
    told = [spec.get("renewTime"), spec.get("acquireTime")]
    believed = all(told) and max(map(seconds, told)) <= change.time + FUTURE
    renewed, acquired = map(seconds, told) if believed else (change.time, made_at(lease))
    ends = renewed + spec["leaseDurationSeconds"]
    if not withheld and names.WINDOW_USER_PREFIX not in owner:
        ends = min(ends, acquired + longest_hold)
    elif owner.endswith("quarantine"):
        ends = float("inf")
    return Term(
        annotations.get(names.ACQUISITION_ANNOTATION) or lease["metadata"]["uid"],
        ends,
        owner.partition(" ")[2],
        renewed,
        withheld,
        believed,
    )


def holders(asset: Json) -> dict[str, str]:
    return {holder["acquisition"]: holder["mode"] for holder in asset.get("status", {}).get("holders", [])}
