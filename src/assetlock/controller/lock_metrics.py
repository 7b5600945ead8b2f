"""What Prometheus reads of assets and locks: how many there are, who waits, and what is late."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily

from assetlock.controller.controller import Controller
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock, LockState

LOCK_STATES = ("Unlocked", "Locked", "Maintenance")


def collect(controller: Controller) -> Iterator[GaugeMetricFamily]:
    """How many there are and what is late, counted when somebody asks, so that nothing has to be kept in step."""
    now, locks = controller.now, list(controller.locks)
    yield _by("assetlock_assets", "Assets.", "lock_state", asset_states(controller.assets))
    yield _by("assetlock_locks", "AssetLocks.", "state", lock_states(locks))
    yield GaugeMetricFamily(
        "assetlock_oldest_wait_seconds",
        "For how long the oldest of them waits.",
        value=oldest_wait(locks, now),
    )
    yield GaugeMetricFamily(
        "assetlock_expiry_lag_seconds",
        "How long ago a held lock should have expired.",
        value=expiry_lag(locks, now),
    )


def asset_states(assets: Iterable[Asset]) -> Mapping[str, int]:
    """How many assets are in each state."""
    counted: Counter[str] = Counter(asset.status.lock_state for asset in assets)
    return {state: counted[state] for state in LOCK_STATES}


def lock_states(locks: Iterable[AssetLock]) -> Mapping[str, int]:
    """How many AssetLocks are in each state."""
    counted = Counter(lock.status.state or LockState.PENDING for lock in locks)
    return {str(state): counted[state] for state in LockState}


def oldest_wait(locks: Iterable[AssetLock], now: datetime.datetime) -> float:
    """Seconds since the oldest lock that still waits was created; 0 if none does."""
    waiting = (lock for lock in locks if lock.status.state in (None, LockState.PENDING))
    created = [moment for lock in waiting if (moment := lock.metadata.creation_timestamp)]
    return max((now - min(created)).total_seconds(), 0.0) if created else 0.0


def expiry_lag(locks: Iterable[AssetLock], now: datetime.datetime) -> float:
    """Seconds since the end of the held lock that is longest overdue; 0 if none is."""
    held = (lock for lock in locks if lock.status.state == LockState.HELD)
    ends = [moment for lock in held if (moment := lock.status.expire_time)]
    return max((now - min(ends)).total_seconds(), 0.0) if ends else 0.0


def _by(name: str, text: str, label: str, values: Mapping[str, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
