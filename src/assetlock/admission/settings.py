"""The settings of the admission process: from the environment (``ASSETLOCK_…``), each with a default that works."""

from __future__ import annotations

import datetime
import pathlib

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from assetlock.model.durations import parse_duration


class AdmissionSettings(BaseSettings):
    """What the webhooks decide by, and the certificate they are served with."""

    model_config = SettingsConfigDict(env_prefix="ASSETLOCK_", frozen=True)

    default_ttl: str = Field(
        "30m", description="TTL of a Lease that says no duration, where its asset says none."
    )
    longest_ttl: str = Field("24h", description="No lock lasts longer without being renewed.")
    skew: str = Field("1s", description="Added to each expiry, for clocks that differ.")
    tls_cert_file: pathlib.Path | None = Field(
        None, description="Serving certificate; without it we make one."
    )
    tls_key_file: pathlib.Path | None = Field(None, description="Its key.")
    tls_names: str = Field(
        "", description="Further names and addresses for our certificate, comma-separated."
    )

    @field_validator("default_ttl", "longest_ttl", "skew")
    @classmethod
    def _is_duration(cls, value: str) -> str:
        parse_duration(value)
        return value

    @model_validator(mode="after")
    def _has_both_files(self) -> AdmissionSettings:
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file go together")
        return self

    @property
    def default(self) -> datetime.timedelta:
        """The default TTL."""
        return parse_duration(self.default_ttl)

    @property
    def longest(self) -> datetime.timedelta:
        """The longest TTL."""
        return parse_duration(self.longest_ttl)

    @property
    def certificate_names(self) -> tuple[str, ...]:
        """The further names for our certificate."""
        return tuple(name.strip() for name in self.tls_names.split(",") if name.strip())
