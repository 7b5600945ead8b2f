"""Whom a rule is about: subjects as RBAC has them."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from assetlock.model import cel
from assetlock.model.base import Model, Username


class Subject(Model):
    """A user, a group or a ServiceAccount."""

    model_config = ConfigDict(
        json_schema_extra=cel.rules(
            cel.rule(
                "(self.kind == 'ServiceAccount') == has(self.namespace)",
                "a ServiceAccount has a namespace, a User or a Group has none",
                field="namespace",
            )
        )
    )

    kind: Literal["User", "Group", "ServiceAccount"] = Field(description="What it is.")
    name: Username = Field(description="Its name.")
    namespace: str | None = Field(
        None,
        max_length=63,
        description="The ServiceAccount's namespace.",
        json_schema_extra=cel.matches(cel.DNS_LABEL, "a namespace is a DNS label: a-z, 0-9 and -"),
    )

    @property
    def username(self) -> str | None:
        """The user that it stands for; ``None`` for a group."""
        if self.kind == "ServiceAccount":
            return f"system:serviceaccount:{self.namespace}:{self.name}"
        return self.name if self.kind == "User" else None

    @property
    def group(self) -> str | None:
        """The group that it stands for; ``None`` for a single user."""
        return self.name if self.kind == "Group" else None
