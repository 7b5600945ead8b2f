"""The part of an object's metadata that we read."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from assetlock.model.base import Model, Time


class ObjectMeta(Model):
    """``metadata`` of any Kubernetes object."""

    name: str = ""
    namespace: str | None = None
    uid: str = ""
    resource_version: str = ""
    generation: int | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    finalizers: list[str] = Field(default_factory=list)
    owner_references: list[dict[str, Any]] = Field(default_factory=list)
