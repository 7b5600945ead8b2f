"""What must never be, looked at after every commit. Here: who is told that he holds, with which token, and has room.

What else is promised is judged in modules of their own, by what the ledger knows. The ledger notes a commit before it
is judged, except that the loss of a Lease is judged by what was known until then.
"""

from assetlock.core import names
from tests.sim import records
from tests.sim.ends import Ends
from tests.sim.halves import Halves
from tests.sim.ledger import Ledger, Turnover
from tests.sim.losses import Losses
from tests.sim.records import Announced
from tests.sim.stamps import Stamps
from tests.sim.store import Change, Json, Store
from tests.sim.strictness import Strictness
from tests.sim.turns import Turns


class Judges:
    """All of them. `trouble_at` is kept up to date by whoever makes trouble."""

    def __init__(self, store: Store, strictness: Strictness) -> None:
        self.announcements = 0
        self._tokens: dict[str, int] = {}
        self._ledger = Ledger()
        self._stamps = Stamps(self._ledger, store, strictness)
        self._losses = Losses(self._ledger, strictness)
        self._halves = Halves(self._ledger, strictness)
        self._turns = Turns(self._ledger, store, strictness)
        self._ends = Ends(self._ledger, store, strictness)

    @property
    def trouble_at(self) -> float:
        """The last moment at which something was out of order; infinity while it is."""
        return self._ledger.trouble_at

    @trouble_at.setter
    def trouble_at(self, time: float) -> None:
        self._ledger.trouble_at = time

    def waiting(self) -> list[str]:
        """The AssetLocks that have not ended."""
        locks = self._ledger.locks.values()
        return [lock["metadata"]["name"] for lock in locks if records.state_of(lock) not in records.TERMINAL]

    def __call__(self, change: Change) -> None:
        """Judge one commit."""
        match change.key.plural:
            case "assets":
                self._on_asset(change)
            case "assetlocks":
                self._on_lock(change)
            case "leases" if names.ASSET_LABEL in change.obj["metadata"].get("labels", {}):
                self._on_lease(change)
            case "configmaps":
                self._stamps.judge_target(change)

    def _on_asset(self, change: Change) -> None:
        self._ledger.note_asset(change)
        self._stamps.note_asset(change)
        if change.old is None:
            self._tokens.pop(change.key.name, None)  # Another Asset of this name begins to count anew.
        elif change.new is not None:
            _judge_mark(change.key.name, change.old.obj, change.new.obj)
            _judge_room(change.key.name, change.old.obj, change.new.obj)

    def _on_lock(self, change: Change) -> None:
        self._ledger.note_lock(change)
        if change.new is None:
            return
        self._ends.judge(change)
        if records.announces(change):
            for asset, new in records.announced_by(change.obj):
                self._judge_announcement(asset, new, change.time)
            self._halves.judge_announcement(change.obj)

    def _on_lease(self, change: Change) -> None:
        turnover = self._ledger.turnover(change)
        if turnover is None:
            return
        self._losses.judge_loss(turnover)
        self._ledger.note_lease(turnover)
        self._halves.judge_turnover(turnover)
        if turnover.granted is not None:
            self._losses.judge_successor(turnover, turnover.granted)
            self._turns.judge(turnover, turnover.granted)
        self._on_token(turnover, change.obj["metadata"].get("annotations", {}))

    def _on_token(self, turnover: Turnover, annotations: Json) -> None:
        """A Lease that no AssetLock stands for tells its token itself, and never another one."""
        asset, holder, token = turnover.asset, turnover.after, annotations.get(names.TOKEN_ANNOTATION)
        if holder is None or token is None:
            return
        if names.LOCK_ANNOTATION in annotations and not holder.withheld:
            return
        known = self._ledger.announced[asset].get(holder.acquisition)
        if known is not None:
            assert known.token == int(token), f"token {known.token} became {token} while it was held"
            return
        if self._ledger.is_gone(asset):
            return  # Its word was under way: it protects nothing.
        if self._ledger.assets_deleted and holder.acquisition in self._ledger.told:
            return
        if holder.withheld and self._is_over_for_another(asset, holder.acquisition):
            return
        new = Announced(holder.acquisition, holder.user, int(token), None)
        self._judge_announcement(asset, new, turnover.time)

    def _is_over_for_another(self, asset: str, acquisition: str) -> bool:
        """Whether a delay may be over by another controller's clock: it takes things away then, in any order."""
        named = acquisition in records.holders(self._ledger.assets[asset])
        return acquisition in self._ledger.told or not named

    def _judge_announcement(self, asset: str, new: Announced, now: float) -> None:
        present = self._ledger.announced[asset]
        assert not (present and new.alone), f"{new} was announced while {present} still held {asset}"
        assert not any(other.alone for other in present.values()), f"{new} was announced beside {present}"
        last = self._tokens.get(asset, 0)
        assert new.token > last or new.late, f"{new} was announced after token {last}"
        status = self._ledger.recorded_for(asset, new.acquisition)
        mark = status.get("fencingToken", 0)
        assert mark >= new.token, f"{new} was announced with the high-water mark at {mark}"
        tokens = [holder["fencingToken"] for holder in status.get("holders", [])]
        assert new.token in tokens, f"{new} was announced while the Asset named {tokens}"
        self._tokens[asset] = max(new.token, last)
        self._ledger.note_announcement(asset, new)
        self.announcements += 1
        self._stamps.judge_announcement(asset, new, now)


def _judge_mark(name: str, old: Json, new: Json) -> None:
    before, after = (asset.get("status", {}).get("fencingToken", 0) for asset in (old, new))
    assert after >= before, f"the high-water mark of {name} fell from {before} to {after}"


def _judge_room(name: str, old: Json, new: Json) -> None:
    """Who comes onto the Asset fits, a writer alone; nobody is thrown out when the capacity shrinks."""
    before, after = records.holders(old), records.holders(new)
    capacity = new["spec"].get("capacity", 1)
    assert len(after) <= max(capacity, len(before)), f"{after} hold {name} at a capacity of {capacity}"
    assert len(after) == 1 or "Exclusive" not in after.values(), f"a writer is not alone on {name}: {after}"
