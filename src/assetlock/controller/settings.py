"""The controller's settings: those of all locks, and where it answers for itself."""

from __future__ import annotations

import datetime

from pydantic import Field, field_validator, model_validator

from assetlock.controller.leadership import Timing
from assetlock.core.observation import Limits
from assetlock.model.durations import parse_duration
from assetlock.model.settings import LockSettings


class Settings(LockSettings):
    """From the environment (``ASSETLOCK_…``), each with a default that works."""

    health_host: str = Field("127.0.0.1", description="Where /healthz, /readyz and /metrics are served.")
    health_port: int = Field(0, description="Their port; 0 for a free one, which the log names.")

    lease_duration: str = Field("15s", description="The leader's Lease: one that died is succeeded after it.")
    renew_deadline: str = Field(
        "10s", description="A leader that could not renew it for so long stops acting."
    )
    retry_period: str = Field("2s", description="How often it is renewed, and looked at by who stands by.")
    pod_uid: str | None = Field(None, description="The pod's UID: one started again in it leads at once.")

    @field_validator("lease_duration", "renew_deadline", "retry_period")
    @classmethod
    def _lasts(cls, value: str) -> str:
        parse_duration(value)
        return value

    @model_validator(mode="after")
    def _times_fit(self) -> Settings:
        self.timing()
        return self

    def timing(self) -> Timing:
        """The times of leader election; raises ValueError when they don't fit together."""
        told = (self.lease_duration, self.renew_deadline, self.retry_period)
        return Timing(*(parse_duration(each).total_seconds() for each in told))

    def limits(self) -> Limits:
        """What decisions depend on."""
        return Limits(
            default_ttl=parse_duration(self.default_ttl),
            longest_ttl=max(parse_duration(self.longest_ttl), datetime.timedelta(seconds=1)),
            skew=parse_duration(self.skew),
        )
