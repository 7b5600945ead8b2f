"""Whose turn it is: the first in line gets the Lease, or the heir of who hands it over."""

from collections.abc import Iterator

from tests.sim import records
from tests.sim.evidence import has_lost_its_pod
from tests.sim.kinds import MAINTENANCE_WINDOWS
from tests.sim.ledger import Ledger, Turnover
from tests.sim.records import TERMINAL, Term
from tests.sim.store import Json, Store
from tests.sim.strictness import CUT, SKEW, Strictness


class Turns:
    """Looks at a Lease when the controller gives it to somebody, in schedules where it must know all who wait."""

    def __init__(self, ledger: Ledger, store: Store, strictness: Strictness) -> None:
        self._ledger = ledger
        self._store = store
        self._strict = strictness

    def judge(self, turnover: Turnover, new: Term) -> None:
        """To be asked when the ledger has noted the turnover."""
        if not self._strict.in_order:
            return
        self._judge_heir(turnover, new)
        chosen = self._ledger.lock_of(new.acquisition)
        if turnover.first and chosen is not None:
            self._judge_turn(turnover, chosen)

    def _judge_heir(self, turnover: Turnover, new: Term) -> None:
        """A lock that was handed over is followed by one that was to take over from it, and still waits to."""
        last = turnover.last
        lock = self._ledger.lock_of(last.acquisition) if last else None
        if lock is None or records.state_of(lock) not in TERMINAL:
            return
        if last is None or new.acquisition == last.acquisition or records.reason_of(lock) != "HandedOver":
            return
        name = lock["metadata"]["name"]
        ended_at = self._ledger.ended_at[lock["metadata"]["uid"]]
        heirs = [
            other
            for other in self._ledger.locks.values()
            if other["spec"].get("takeOver") == name and turnover.asset in records.assets_of(other)
        ]
        present = self._ledger.acquisitions_on(turnover.asset)
        served = any(records.acquisition_of(heir) in present for heir in heirs)
        assert served or not any(self._waits_to_take_over(heir, ended_at) for heir in heirs), (
            f"{turnover.lease} was handed over from {name} to who was not to take over"
        )

    def _waits_to_take_over(self, heir: Json, ended_at: float) -> bool:
        """Whether it was there when the lock ended that it takes over, and still waits."""
        return (
            records.is_pending(heir)
            and self._ledger.seen_at[heir["metadata"]["uid"]] <= ended_at
            and not has_lost_its_pod(self._store, heir)
        )

    def _judge_turn(self, turnover: Turnover, chosen: Json) -> None:
        """Nobody gets a Lease whose wait is over, or before somebody of a better rank."""
        if "takeOver" in chosen["spec"] or chosen["spec"].get("mode") == "Maintenance":
            return
        windows = list(self._store.objects(MAINTENANCE_WINDOWS))
        if any(window["spec"]["leadTime"] != "0s" for window in windows):
            return  # Who asks for too long a term before a window lets others pass.
        over, now = records.wait_over(chosen), turnover.time
        assert over is None or now <= over + SKEW + self._strict.patience, "granted though its wait was over"
        for other in self._in_line(turnover.asset, has_windows=bool(windows)):
            name, better = chosen["metadata"]["name"], other["metadata"]["name"]
            assert not self._is_eligible(other, now) or records.rank(chosen) <= records.rank(other), (
                f"{name} was granted before {better}"
            )

    def _in_line(self, asset: str, *, has_windows: bool) -> Iterator[Json]:
        """The locks that wait for the asset, and may not be passed over."""
        return (
            lock
            for lock in self._ledger.pending()
            if asset in records.assets_of(lock)
            and not self._may_be_passed_over(asset, lock, has_windows=has_windows)
        )

    def _may_be_passed_over(self, asset: str, lock: Json, *, has_windows: bool) -> bool:
        several = "assetName" not in lock["spec"]
        return (
            "takeOver" in lock["spec"]
            or records.acquisition_of(lock) in self._ledger.acquisitions_on(asset)
            or (has_windows and several)  # One of its assets may be closed.
            or (records.wait_over(lock) is None and (several or self._ledger.is_shared(asset)))
        )

    def _is_eligible(self, lock: Json, now: float) -> bool:
        """Whether the controllers must know of it, and nothing may be known that ends its wait."""
        slack = self._strict.patience
        over = records.wait_over(lock)
        return (
            now - self._ledger.seen_at[lock["metadata"]["uid"]] > slack
            and (over is None or now < over - CUT - slack)
            and not has_lost_its_pod(self._store, lock)
        )
