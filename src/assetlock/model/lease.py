"""A ``coordination.k8s.io/v1`` Lease, as far as a lock is made of it."""

from __future__ import annotations

import datetime
from typing import Annotated

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from assetlock.model.base import MicroTime, Model
from assetlock.model.meta import ObjectMeta

_FIRST_YEAR = 1900


def _if_it_can_be_meant(value: object, read: ValidatorFunctionWrapHandler) -> datetime.datetime | None:
    """Clients may write any time that Go knows, the year 0 too; what nobody can reckon with says nothing."""
    try:
        moment: datetime.datetime | None = read(value)
    except (ValidationError, OverflowError):
        return None
    return moment if moment and _FIRST_YEAR < moment.year < datetime.MAXYEAR else None


LeaseTime = Annotated[MicroTime | None, WrapValidator(_if_it_can_be_meant)]


class LeaseSpec(Model):
    """Who holds it, for how long, since when. An empty ``holder_identity`` means nobody."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: LeaseTime = None
    renew_time: LeaseTime = None
    lease_transitions: int | None = None


class Lease(Model):
    """One Lease."""

    metadata: ObjectMeta
    spec: LeaseSpec = Field(default_factory=LeaseSpec)
