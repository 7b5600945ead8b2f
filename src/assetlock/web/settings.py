"""The settings of the HTTP process: from the environment (``ASSETLOCK_HTTP_…``), each with a default that works."""

from __future__ import annotations

import pathlib

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


class HttpSettings(BaseSettings):
    """Where it listens, and what it allows a caller."""

    model_config = SettingsConfigDict(env_prefix="ASSETLOCK_HTTP_", frozen=True)

    default_namespace: str = Field(
        "default",
        description="The namespace that `main` stands for in paths, as tenants are called elsewhere.",
    )
    rights_seconds: float = Field(
        5.0,
        ge=0,
        le=60,
        description="How long a right to read from the cache is remembered after it was asked for.",
    )
    longest_wait_seconds: float = Field(
        50.0,
        gt=0,
        lt=60,
        description="How long one request waits at most: load balancers end idle ones after 60 s.",
    )
    requests_per_second: float = Field(
        20.0, gt=0, description="How many requests a caller may make, on average."
    )
    burst: int = Field(100, ge=1, description="How many at once.")
    tls_cert_file: pathlib.Path | None = Field(
        None, description="Serving certificate; plain HTTP without it."
    )
    tls_key_file: pathlib.Path | None = Field(None, description="Its key.")

    @model_validator(mode="after")
    def _has_both_files(self) -> HttpSettings:
        if (self.tls_cert_file is None) != (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file go together")
        return self
