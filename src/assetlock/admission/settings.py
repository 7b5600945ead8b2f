"""The settings of the admission process: from the environment (``ASSETLOCK_…``), each with a default that works."""

from __future__ import annotations

import datetime
import pathlib

from pydantic import Field, model_validator

from assetlock.model.durations import parse_duration
from assetlock.model.settings import LockSettings


class AdmissionSettings(LockSettings):
    """What the webhooks decide by, and the certificate they are served with."""

    tls_cert_file: pathlib.Path | None = Field(
        None, description="Serving certificate; without it we make one."
    )
    tls_key_file: pathlib.Path | None = Field(None, description="Its key.")
    drain_seconds: float = Field(
        0.5,
        ge=0,
        description="How long it goes on serving when it is to end; each answer then closes its connection.",
    )
    tls_names: str = Field(
        "", description="Further names and addresses for our certificate, comma-separated."
    )

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
