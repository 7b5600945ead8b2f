"""Who asks for several assets has all of them or none, but for the moment in which they are taken."""

from tests.sim import records
from tests.sim.ledger import Ledger, Turnover
from tests.sim.store import Json
from tests.sim.strictness import PROMPT, Strictness


class Halves:
    """Looks at Leases as they come and go, and at locks when they are told that they are held."""

    def __init__(self, ledger: Ledger, strictness: Strictness) -> None:
        self._ledger = ledger
        self._strict = strictness
        self._since: dict[str, float] = {}

    def judge_announcement(self, lock: Json) -> None:
        """Who holds several assets has the Leases of all of them, unless somebody took one just now."""
        acquisition = records.acquisition_of(lock)
        lacking = [
            asset
            for asset in records.assets_of(lock)
            if acquisition not in self._ledger.acquisitions_on(asset)
        ]
        name, tokens = lock["metadata"]["name"], records.tokens_of(lock)
        assert set(tokens) == set(records.assets_of(lock)), f"{name} was announced with {tokens} only"
        assert not lacking or self._ledger.leases_deleted_by_hand, f"{name} was announced without {lacking}"

    def judge_turnover(self, turnover: Turnover) -> None:
        """Nobody has some of several assets and not the others for long, neither before nor after."""
        for acquisition in {term.acquisition for term in (turnover.before, turnover.after) if term}:
            lock = self._ledger.lock_of(acquisition)
            if lock is not None and len(records.assets_of(lock)) > 1:
                self._judge_whole(acquisition, lock, turnover.time)

    def _judge_whole(self, acquisition: str, lock: Json, now: float) -> None:
        having = [acquisition in self._ledger.acquisitions_on(asset) for asset in records.assets_of(lock)]
        if any(having) and not all(having):
            self._since.setdefault(acquisition, now)
            return
        since = self._since.pop(acquisition, None)
        if since is not None and self._strict.on_time:
            latest = self._ledger.latest(since + PROMPT) + self._strict.patience * len(having)
            assert now <= latest, f"{lock['metadata']['name']} was half held for {now - since:.2f}s"
