"""How long a lock lasts: what it asks for, within what its asset and the operator allow."""

from __future__ import annotations

import datetime
import math

from assetlock.core.observation import Limits
from assetlock.core.windows.calendar import LONGEST
from assetlock.model.asset import Asset
from assetlock.model.assetlock import AssetLock
from assetlock.model.durations import parse_duration


def effective_ttl(lock: AssetLock, asset: Asset | None, limits: Limits) -> datetime.timedelta:
    """How long a term of this lock lasts: as asked, within what asset and operator allow, in whole seconds."""
    asked = parse_duration(lock.spec.ttl) if lock.spec.ttl else default_ttl(asset, limits)
    longest = longest_ttl(asset, limits, lock)
    return datetime.timedelta(seconds=max(1, math.ceil(min(asked, longest).total_seconds())))


def default_ttl(asset: Asset | None, limits: Limits) -> datetime.timedelta:
    """How long a lock lasts that says nothing about it."""
    return parse_duration(asset.spec.default_ttl) if asset and asset.spec.default_ttl else limits.default_ttl


def longest_ttl(asset: Asset | None, limits: Limits, lock: AssetLock | None = None) -> datetime.timedelta:
    """The longest term that asset and operator allow. People's locks for maintenance may be of any length."""
    if lock is not None and lock.spec.mode == "Maintenance":
        return LONGEST
    own = parse_duration(asset.spec.max_ttl) if asset and asset.spec.max_ttl else limits.longest_ttl
    return min(own, limits.longest_ttl)


def lock_delay(asset: Asset | None) -> datetime.timedelta:
    """How long nobody gets the asset after a lock was not released by its holder."""
    return parse_duration(asset.spec.lock_delay) if asset and asset.spec.lock_delay else datetime.timedelta()
