"""How AssetLocks end: not before their time, for a reason that there is, and for good."""

import itertools

from tests.sim import records
from tests.sim.evidence import has_lost_its_pod
from tests.sim.ledger import Ledger
from tests.sim.records import TERMINAL
from tests.sim.store import Change, Json, Store
from tests.sim.strictness import Strictness

FAILURES = frozenset(
    {
        "WaitTimeout",
        "Locked",
        "HolderGone",
        "LockDelay",
        "Quarantined",
        "NothingToTakeOver",
        "Deadlock",
        "TooFewAssets",
        "Maintenance",
        "TargetLocked",
    }
)


class Ends:
    """Looks at an AssetLock whenever its state is written."""

    def __init__(self, ledger: Ledger, store: Store, strictness: Strictness) -> None:
        self._ledger = ledger
        self._store = store
        self._strict = strictness

    def judge(self, change: Change) -> None:
        """What became of an AssetLock that is still there."""
        lock, name = change.obj, change.key.name
        old = records.state_of(change.old.obj) if change.old else None
        new = records.state_of(lock)
        if old in TERMINAL:
            assert new == old, f"{name} left its terminal state {old} for {new}"
        elif new in TERMINAL:
            self._judge_end(lock, str(new), change.time)

    def _judge_end(self, lock: Json, state: str, now: float) -> None:
        if state == "Expired":
            self._judge_term(lock, now)
        reason, name = records.reason_of(lock), lock["metadata"]["name"]
        if reason == "HolderGone":
            assert has_lost_its_pod(self._store, lock), f"{name} ended with a pod that lives"
        if state == "Revoked":
            self._judge_revocation(lock, reason)
        if state == "Failed":
            self._judge_failure(lock, reason, now)

    def _judge_term(self, lock: Json, now: float) -> None:
        """Of several Leases the one that was renewed last says until when."""
        acquisition = records.acquisition_of(lock)
        own = self._ledger.terms_of(acquisition)
        if not self._strict.full_terms or not own:
            return
        latest = max(own, key=lambda term: term.renewed).ends
        since = now - self._strict.patience
        before = (self._ledger.ends_since(since, a, acquisition) for a in records.assets_of(lock))
        ends = min(latest, *itertools.chain.from_iterable(before))
        assert now >= ends, f"{lock['metadata']['name']} ended {ends - now:.2f}s early"

    def _judge_revocation(self, lock: Json, reason: str) -> None:
        ledger, name = self._ledger, lock["metadata"]["name"]
        if reason == "Maintenance":
            assert ledger.sent_away & set(records.assets_of(lock)), f"{name} was sent away by no window"
        elif not (reason == "AssetDeleted" and ledger.assets_deleted):
            # One controller gave a slot back that another had already recorded: that lock may not be told any more.
            taken = ledger.leases_deleted_by_hand or lock["metadata"]["uid"] in ledger.given_back
            assert taken, f"{name} was revoked ({reason}) though nobody took its Lease"

    def _judge_failure(self, lock: Json, reason: str, now: float) -> None:
        name = lock["metadata"]["name"]
        if reason == "WaitTimeout" and self._strict.full_terms:
            over = records.wait_over(lock)
            assert over is None or now >= over - 1.0, f"{name} was failed before its wait was over"
        if self._strict.in_order:
            assert reason in FAILURES, f"{name} failed for {reason}"
