"""The controller's settings: those of all locks, and where it answers for itself."""

from __future__ import annotations

import datetime

from pydantic import Field

from assetlock.core.observation import Limits
from assetlock.model.durations import parse_duration
from assetlock.model.settings import LockSettings


class Settings(LockSettings):
    """From the environment (``ASSETLOCK_…``), each with a default that works."""

    health_host: str = Field("127.0.0.1", description="Where /healthz, /readyz and /metrics are served.")
    health_port: int = Field(0, description="Their port; 0 for a free one, which the log names.")

    def limits(self) -> Limits:
        """What decisions depend on."""
        return Limits(
            default_ttl=parse_duration(self.default_ttl),
            longest_ttl=max(parse_duration(self.longest_ttl), datetime.timedelta(seconds=1)),
            skew=parse_duration(self.skew),
        )
