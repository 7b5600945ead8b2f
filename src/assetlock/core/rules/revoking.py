"""What is ended when somebody revokes an asset's lock by hand."""

from __future__ import annotations

from assetlock.core.acquisition import Acquisition, lacks_slots
from assetlock.core.identity import LOCK_DELAY
from assetlock.core.observation import Observation, Revocation
from assetlock.core.situation import Situation


def revocation_of(observation: Observation, by: str) -> Revocation:
    """Everything that has Leases now, but for a lock that waits and only collects what it will need.

    What a lockDelay keeps from everybody stays so: it is no lock, and ends by itself.
    """
    acquisitions = Situation(observation).acquisitions
    ended = (
        each.id
        for each in acquisitions
        if each.claim.identity != LOCK_DELAY and not _only_collects(each, observation.capacity)
    )
    return Revocation(by, frozenset(ended))


def _only_collects(acquisition: Acquisition, capacity: int) -> bool:
    lock = acquisition.lock
    if lock is None or acquisition.recorded is not None or acquisition.token_announced is not None:
        return False
    return lacks_slots(lock, acquisition.claim, capacity)
