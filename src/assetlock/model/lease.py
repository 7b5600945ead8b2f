"""A ``coordination.k8s.io/v1`` Lease, as far as a lock is made of it."""

from __future__ import annotations

from pydantic import Field

from assetlock.model.base import MicroTime, Model
from assetlock.model.meta import ObjectMeta


class LeaseSpec(Model):
    """Who holds it, for how long, since when. An empty ``holder_identity`` means nobody."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: int | None = None


class Lease(Model):
    """One Lease."""

    metadata: ObjectMeta
    spec: LeaseSpec = Field(default_factory=LeaseSpec)
