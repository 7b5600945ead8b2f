"""Who holds a lock: an authenticated username and, for pods, the pod that its token is bound to.

A fence also knows groups, and holders for maintenance, who may not write themselves. Each has a word where others
have their pod's UID, and no pod's UID is a word.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from assetlock.core import names
from assetlock.model.subject import Subject

UNBOUND = "-"
GROUP = "group"
MAINTENANCE = "maintenance"


@dataclasses.dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated requester.

    ``pod_uid`` is set when only that very pod may use the lock, and ``None`` when anybody who is
    authenticated as ``username`` may.
    """

    username: str
    pod_uid: str | None = None

    def __str__(self) -> str:
        """Render as it stands in annotations: the pod's UID or ``-``, a space, the username."""
        return f"{self.pod_uid or UNBOUND} {self.username}"

    @classmethod
    def of(cls, subject: Subject) -> Identity:
        """The identity of a subject as RBAC has them; a group stands for everybody in it."""
        return cls(subject.group, GROUP) if subject.group else cls(subject.username or "")

    @property
    def group(self) -> str | None:
        """The group whose members it stands for."""
        return self.username if self.pod_uid == GROUP else None

    @classmethod
    def parse(cls, text: str) -> Identity:
        """Read what ``str`` wrote; raises ValueError for anything else."""
        pod_uid, separator, username = text.partition(" ")
        if not separator or not username or not pod_uid or "\n" in text:
            raise ValueError(f"not an owner: {text!r}; expected '<pod UID or -> <username>'")
        return cls(username, None if pod_uid == UNBOUND else pod_uid)


NOBODY = Identity("assetlock:unknown-holder")
"""Stands for the holder of a Lease that carries no owner: fenced against everybody."""

LOCK_DELAY = Identity("assetlock:lock-delay")
QUARANTINE = Identity("assetlock:quarantine")
"""They hold an asset that is kept from everybody: for the time of its lockDelay, or until a person looks at it."""


def owner_of(annotations: Mapping[str, str]) -> Identity:
    """Whose a Lease with these annotations is; `NOBODY` where they do not say."""
    try:
        return Identity.parse(annotations.get(names.OWNER_ANNOTATION, ""))
    except ValueError:
        return NOBODY
