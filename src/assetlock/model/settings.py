"""The settings that every process of the operator must agree on: defaults and limits of all locks."""

from __future__ import annotations

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from assetlock.model.durations import parse_duration


class LockSettings(BaseSettings):
    """From the environment (``ASSETLOCK_…``). Durations as in resources: ``30m`` or ``PT30M``."""

    model_config = SettingsConfigDict(env_prefix="ASSETLOCK_", frozen=True)

    namespace: str = Field(
        "assetlock-system", description="Where the operator runs; its own Lease and Secret."
    )
    default_ttl: str = Field("30m", description="TTL of a lock where neither it nor its asset says one.")
    longest_ttl: str = Field("24h", description="No lock lasts longer without being renewed.")
    skew: str = Field("1s", description="Added to each expiry, for clocks that differ.")

    @field_validator("default_ttl", "longest_ttl", "skew")
    @classmethod
    def _is_duration(cls, value: str) -> str:
        parse_duration(value)
        return value
