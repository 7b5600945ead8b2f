"""Nobody loses a Lease early or late, or to somebody who was to be kept out."""

from assetlock.model.durations import parse_duration
from tests.sim import records
from tests.sim.ledger import Ledger, Turnover
from tests.sim.records import TERMINAL, Term
from tests.sim.store import Json
from tests.sim.strictness import CUT, PROMPT, SKEW, Strictness


class Losses:
    """Looks at a Lease when somebody has it no more, and again when somebody else gets it."""

    def __init__(self, ledger: Ledger, strictness: Strictness) -> None:
        self._ledger = ledger
        self._strict = strictness

    def judge_loss(self, turnover: Turnover) -> None:
        """To be asked before the ledger notes the turnover."""
        lost = turnover.lost
        if lost is None:
            return
        self._judge_promptness(turnover, lost)
        if not turnover.by_controller:
            return
        if lost.withheld:
            self._judge_withholding(turnover, lost)
        else:
            self._judge_robbery(turnover, lost)

    def _judge_promptness(self, turnover: Turnover, lost: Term) -> None:
        ledger = self._ledger
        collected = ledger.lock_of(lost.acquisition) and lost.acquisition not in ledger.told
        if not self._strict.on_time or collected or not lost.believed:
            return
        ends = ledger.ends[lost.acquisition]
        latest = ledger.latest(ends + SKEW + PROMPT) + self._strict.patience
        late = turnover.time - ends
        assert turnover.time <= latest, f"{turnover.lease} was freed {late:.2f}s after it had run out"

    def _judge_withholding(self, turnover: Turnover, lost: Term) -> None:
        """What is kept from everybody goes to somebody when its time is over, or when somebody has looked."""
        if not self._strict.full_terms or self._ledger.assets_deleted:
            return
        if lost.user == "assetlock:quarantine":
            lock = self._ledger.lock_of(lost.acquisition)
            heir = lock and any(
                other["spec"].get("takeOver") == lock["metadata"]["name"]
                for other in self._ledger.locks.values()
            )
            assert lock is None or heir, f"the quarantine of {turnover.lease} was ended by nobody"
        else:
            assert turnover.time >= lost.ends, f"lockDelay was {lost.ends - turnover.time:.2f}s short"

    def _judge_robbery(self, turnover: Turnover, lost: Term) -> None:
        """The controller takes a Lease from those only whose lock has ended, or whose time was up."""
        asset, acquisition = turnover.asset, lost.acquisition
        lock = self._ledger.lock_of(acquisition)
        if lock is None:
            self._judge_term(turnover, lost)
            return
        state, given_back = records.state_of(lock), self._may_give_back(asset, acquisition, lock)
        assert state in TERMINAL or given_back, (
            f"{lock['metadata']['name']} lost its Lease while it was {state}"
        )

    def _judge_term(self, turnover: Turnover, lost: Term) -> None:
        """Who made a Lease by hand has it until it runs out, or a window sends him away."""
        asset, acquisition, now = turnover.asset, lost.acquisition, turnover.time
        by_hand = acquisition.partition(".")[0] not in self._ledger.seen_at
        if by_hand and asset not in self._ledger.sent_away and self._strict.full_terms:
            before = self._ledger.ends_since(now - self._strict.patience, asset, acquisition)
            ends = min(lost.ends, *before)
            assert now >= ends, f"a Lease made by hand was taken {ends - now:.2f}s early"

    def _may_give_back(self, asset: str, acquisition: str, lock: Json) -> bool:
        """Whether it only collects Leases, or has begun anew since."""
        if acquisition in self._ledger.told:
            return False
        return self._ledger.is_shared(asset) or acquisition != records.acquisition_of(lock)

    def judge_successor(self, turnover: Turnover, new: Term) -> None:
        """Nobody follows at once where a lock was quarantined, or was not released while there is a lockDelay."""
        last, ledger = turnover.last, self._ledger
        lock = ledger.lock_of(last.acquisition) if last else None
        if last is None or lock is None or new.acquisition == last.acquisition or ledger.assets_deleted:
            return
        if records.acquisition_of(lock) not in ledger.told or not self._strict.full_terms:
            return
        heir, name = ledger.lock_of(new.acquisition) or {"spec": {}}, lock["metadata"]["name"]
        state, taken_over = records.state_of(lock), heir["spec"].get("takeOver") == name
        assert state != "Quarantined" or taken_over, (
            f"{turnover.lease} was passed on, quarantined with {name}"
        )
        delay = parse_duration(ledger.assets[turnover.asset]["spec"].get("lockDelay", "0s")).total_seconds()
        if state not in ("Expired", "Revoked") or taken_over:
            return
        if records.reason_of(lock) != "Maintenance":
            since = turnover.time - ledger.ended_at[lock["metadata"]["uid"]]
            assert since >= delay - CUT, f"{turnover.lease} was passed on {since:.2f}s after {name}"
