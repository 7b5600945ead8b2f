"""What the commits of a schedule have told so far, for all who judge the next one. Nothing is judged here.

A lock is held from its announcement (an AssetLock's state `Held`, a Lease's token) until it is taken back: the
AssetLock gone or terminal, the Lease gone or somebody else's. Whatever is known here, the server itself knows.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator

from assetlock.core import names
from assetlock.model.durations import parse_duration
from tests.sim import records
from tests.sim.records import Announced, Term
from tests.sim.store import Change, Json

RECOVERY = 5.0
"""So long after the last trouble all that is due has to be done."""


@dataclasses.dataclass(frozen=True, slots=True)
class Turnover:
    """What a commit makes of a Lease: whose it was until now, whose it was last, and whose it is from now on.

    `first`: who has it now had none of the asset's Leases before.
    """

    asset: str
    slot: int
    lease: str
    time: float
    by_controller: bool
    before: Term | None
    last: Term | None
    after: Term | None
    first: bool

    @property
    def lost(self) -> Term | None:
        """The term that is over with it."""
        kept = self.before and self.after and self.after.acquisition == self.before.acquisition
        return None if kept else self.before

    @property
    def granted(self) -> Term | None:
        """The term that the controller gives to somebody with it, or changes."""
        return self.after if self.by_controller and self.after and not self.after.withheld else None


class Ledger:
    """What is known. `trouble_at` is the last moment at which something was out of order.

    AssetLocks are found by their UID: `locks` that there are, `seen_at` when they came, `ended_at` when they became
    terminal, `given_back` those from whom the controller took a Lease. `announced` are those who hold, by asset and
    acquisition; `told`, all who ever did; `ends`, until when an acquisition has its Leases, or had. From the assets
    in `sent_away` a lock that maintains may have sent holders away.
    """

    def __init__(self) -> None:
        self.trouble_at = float("-inf")
        self.assets: dict[str, Json] = {}
        self._deleted: dict[str, Json] = {}
        self.locks: dict[str, Json] = {}
        self.seen_at: dict[str, float] = {}
        self.ended_at: dict[str, float] = {}
        self.announced: defaultdict[str, dict[str, Announced]] = defaultdict(dict)
        self.told: set[str] = set()
        self.ends: dict[str, float] = {}
        self.given_back: set[str] = set()
        self.sent_away: set[str] = set()
        self.leases_deleted_by_hand = False
        self._terms: defaultdict[str, dict[int, Term]] = defaultdict(dict)
        self._last: dict[tuple[str, int], Term] = {}
        self._former: defaultdict[str, list[tuple[float, Term | None]]] = defaultdict(list)
        self._left: defaultdict[tuple[str, int], set[str]] = defaultdict(set)

    def note_asset(self, change: Change) -> None:
        """Leases made by hand protect nothing from an Asset's end until another of its name has them."""
        name = change.key.name
        self.assets[name] = change.obj
        if change.new is None:
            self._deleted[name] = change.obj
            held = self.announced[name]
            self.announced[name] = {key: holder for key, holder in held.items() if holder.lock is not None}

    @property
    def assets_deleted(self) -> bool:
        """Whether any Asset was ever deleted."""
        return bool(self._deleted)

    def is_gone(self, asset: str) -> bool:
        """Whether the last Asset of the name was deleted."""
        return asset in self._deleted and self.assets[asset] is self._deleted[asset]

    def recorded_for(self, asset: str, acquisition: str) -> Json:
        """The status of the Asset that has recorded it, be it of one that is gone: what it had told is under way.

        Of the present one if neither has.
        """
        present = self.assets[asset]
        both = (present, self._deleted.get(asset, present))
        status: Json = next((a for a in both if acquisition in records.holders(a)), present).get("status", {})
        return status

    def note_lock(self, change: Change) -> None:
        """An AssetLock was asked for, went on, or ended."""
        lock, uid = change.obj, change.obj["metadata"]["uid"]
        if change.new is None:
            self.locks.pop(uid, None)
            self._end_lock(lock)
            return
        self.locks[uid] = lock
        self.seen_at.setdefault(uid, change.time)
        if lock["spec"].get("whenHeld") == "Revoke":
            self.sent_away.update(records.assets_of(lock))
        old = records.state_of(change.old.obj) if change.old else None
        if old not in records.TERMINAL and records.state_of(lock) in records.TERMINAL:
            self.ended_at[uid] = change.time
            self._end_lock(lock)

    def _end_lock(self, lock: Json) -> None:
        for asset in records.assets_of(lock):
            self.announced[asset].pop(records.acquisition_of(lock), None)

    def turnover(self, change: Change) -> Turnover | None:
        """What a commit makes of a Lease that stands for a slot. To be judged, and then noted."""
        asset = change.obj["metadata"].get("labels", {}).get(names.ASSET_LABEL, "")
        slot = names.slot_of(asset, change.key.name)
        if slot is None:
            return None
        after = records.term(change, self._longest_hold(asset))
        return Turnover(
            asset,
            slot,
            lease=change.key.name,
            time=change.time,
            by_controller=change.user == names.CONTROLLER_USER,
            before=self._terms[asset].get(slot),
            last=self._last.get((asset, slot)),
            after=after,
            first=after is not None and after.acquisition not in self.acquisitions_on(asset),
        )

    def _longest_hold(self, asset: str) -> float:
        longest = self.assets[asset]["spec"].get("maxHold") if asset in self.assets else None
        return parse_duration(longest).total_seconds() if longest else float("inf")

    def note_lease(self, turnover: Turnover) -> None:
        """A Lease is somebody else's now, or is nobody's, or lasts longer."""
        asset, slot, after = turnover.asset, turnover.slot, turnover.after
        self._former[asset].append((turnover.time, turnover.before))
        if turnover.lost is not None:
            self._note_loss(turnover, turnover.lost)
        if after is None:
            self._terms[asset].pop(slot, None)
            return
        self._terms[asset][slot] = self._last[asset, slot] = after
        self.ends[after.acquisition] = max(term.ends for term in self.terms_of(after.acquisition))

    def _note_loss(self, turnover: Turnover, lost: Term) -> None:
        asset, slot = turnover.asset, turnover.slot
        self._left[asset, slot].add(lost.user)
        left = [term.acquisition for other, term in self._terms[asset].items() if other != slot]
        if lost.acquisition not in left:
            self._end_lease(asset, lost.acquisition)
        lock = self.lock_of(lost.acquisition)
        if lock is not None and not turnover.by_controller:
            self.leases_deleted_by_hand = True
        elif lock is not None and not lost.withheld:
            self.given_back.add(lock["metadata"]["uid"])

    def _end_lease(self, asset: str, acquisition: str) -> None:
        """A lock that is just a Lease ends with it; one that an AssetLock stands for ends with that."""
        known = self.announced[asset].get(acquisition)
        if known and known.lock is None:
            del self.announced[asset][acquisition]

    def note_announcement(self, asset: str, new: Announced) -> None:
        """Somebody was told that he holds."""
        self.announced[asset][new.acquisition] = new
        self.told.add(new.acquisition)
        for slot, term in self._terms[asset].items():
            if term.acquisition == new.acquisition:
                self._left.pop((asset, slot), None)

    def latest(self, due: float) -> float:
        """Until when that has to be done which is due then, but for patience."""
        return max(due, self.trouble_at + RECOVERY)

    def lock_of(self, acquisition: str) -> Json | None:
        """The AssetLock that an acquisition is for; none if the Lease was made by hand, or the lock is gone."""
        return self.locks.get(acquisition.partition(".")[0])

    def pending(self) -> Iterator[Json]:
        """The AssetLocks that wait."""
        return (lock for lock in self.locks.values() if records.is_pending(lock))

    def acquisitions_on(self, asset: str) -> set[str]:
        """Those that have Leases of the asset."""
        return {term.acquisition for term in self._terms[asset].values()}

    def users_on(self, asset: str) -> set[str]:
        """Who has Leases of the asset, and who had them where nobody has been told since that he holds."""
        users = {term.user for term in self._terms[asset].values()}
        left = (gone for (where, _), gone in self._left.items() if where == asset)
        return users.union(*left)

    def terms_of(self, acquisition: str) -> list[Term]:
        """On whatever assets they are."""
        return [t for terms in self._terms.values() for t in terms.values() if t.acquisition == acquisition]

    def is_shared(self, asset: str) -> bool:
        """Whether the asset has several slots, or had."""
        return bool(self.assets[asset]["spec"].get("capacity", 1) > 1 or len(self._terms[asset]) > 1)

    def ends_since(self, since: float, asset: str, acquisition: str) -> Iterator[float]:
        """When the acquisition's terms would have ended that were in force at some time since then."""
        yield float("inf")
        for until, term in reversed(self._former[asset]):
            if until < since:
                return
            if term is not None and term.acquisition == acquisition:
                yield term.ends
