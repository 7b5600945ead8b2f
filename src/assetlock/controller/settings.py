"""The operator's settings: from the environment (``ASSETLOCK_…``), each with a default that works."""

from __future__ import annotations

import datetime

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from assetlock.core.observation import Limits
from assetlock.model.durations import parse_duration


class Settings(BaseSettings):
    """Cluster-wide defaults and limits. Durations as in resources: ``30m`` or ``PT30M``."""

    model_config = SettingsConfigDict(env_prefix="ASSETLOCK_", frozen=True)

    default_ttl: str = Field("30m", description="TTL of a lock where neither it nor its asset says one.")
    longest_ttl: str = Field("24h", description="No lock lasts longer without being renewed.")
    skew: str = Field("1s", description="Added to each expiry, for clocks that differ.")
    health_host: str = Field("127.0.0.1", description="Where /healthz, /readyz and /metrics are served.")
    health_port: int = Field(0, description="Their port; 0 for a free one, which the log names.")

    @field_validator("default_ttl", "longest_ttl", "skew")
    @classmethod
    def _is_duration(cls, value: str) -> str:
        parse_duration(value)
        return value

    def limits(self) -> Limits:
        """What decisions depend on."""
        return Limits(
            default_ttl=parse_duration(self.default_ttl),
            longest_ttl=max(parse_duration(self.longest_ttl), datetime.timedelta(seconds=1)),
            skew=parse_duration(self.skew),
        )
