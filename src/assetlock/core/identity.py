"""Who holds a lock: an authenticated username and, if the lock is bound to one, a pod or a credential of that user.

An identity is one line in stamps, on namespaces and on Leases: a word, a space, a name. The word shows by its form
what kind of line it is: ``-``, a pod's UID, a credential's id (it has a ``=``), or one that begins with ``@``. What
users fill in never makes a word of another form: where it would, the line admits nobody.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Mapping

from assetlock.core import names
from assetlock.core.messages import is_printable, printable
from assetlock.model.limits import LONGEST_USERNAME
from assetlock.model.subject import Subject

UNBOUND = "-"

_POD_UID = re.compile(r"[0-9A-Za-z][-0-9A-Za-z]{0,63}")
_CREDENTIAL_ID = re.compile(r"[0-9A-Za-z]+=[!-~]{1,256}")


class Kind(enum.StrEnum):
    """What an identity stands for. All but a requester have a word of their own."""

    REQUESTER = ""
    GROUP = "@group"
    MAINTENANCE = "@maintenance"
    NOBODY = "@nobody"


@dataclasses.dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated requester, or a group, or somebody who is only named.

    With ``pod_uid`` only that very pod may use the lock, with ``credential_id`` only that very token or certificate;
    else anybody who is authenticated as ``username`` may.
    """

    username: str
    pod_uid: str | None = None
    credential_id: str | None = None
    kind: Kind = Kind.REQUESTER

    def __str__(self) -> str:
        """Render as it stands in annotations. What does not make a line of its kind makes one that admits nobody."""
        word = self._word
        if word is None or not self.username or not is_printable(self.username):
            return f"{Kind.NOBODY} {printable(self.username) or '?'}"
        return f"{word} {self.username}"

    @property
    def _word(self) -> str | None:
        if self.kind is not Kind.REQUESTER:
            return self.kind
        if self.pod_uid is not None and self.credential_id is not None:
            return None
        if self.pod_uid is not None:
            return self.pod_uid if _POD_UID.fullmatch(self.pod_uid) else None
        if self.credential_id is not None:
            return self.credential_id if _CREDENTIAL_ID.fullmatch(self.credential_id) else None
        return UNBOUND

    @classmethod
    def of(cls, subject: Subject) -> Identity:
        """The identity of a subject as RBAC has them; a group stands for everybody in it."""
        found = cls(subject.group, kind=Kind.GROUP) if subject.group else cls(subject.username or "")
        return found.fit()

    @classmethod
    def closing(cls, username: str, reason: str | None) -> Identity:
        """Who closed an asset for maintenance: named to others, but no writer."""
        why = f": {reason}" if reason else ""
        return cls(printable(f"{username}{why}"), kind=Kind.MAINTENANCE)

    def fit(self) -> Identity:
        """The same, or nobody where it does not make a line of its kind: what is read is what was written."""
        return Identity.parse(str(self))

    @property
    def group(self) -> str | None:
        """The group whose members it stands for."""
        return self.username if self.kind is Kind.GROUP else None

    @property
    def is_closing(self) -> bool:
        """Whether it is who closed the asset for maintenance."""
        return self.kind is Kind.MAINTENANCE

    @classmethod
    def parse(cls, text: str) -> Identity:
        """Read what ``str`` wrote; raises ValueError for anything else."""
        word, separator, username = text.partition(" ")
        if not separator or not username or not is_printable(text):
            raise ValueError(f"not an owner: {text!r}; expected '<pod UID, credential or -> <username>'")
        if word == UNBOUND:
            return cls(_short_enough(username))
        if word.startswith("@"):
            return cls(username, kind=Kind(word))
        if _CREDENTIAL_ID.fullmatch(word):
            return cls(_short_enough(username), credential_id=word)
        if _POD_UID.fullmatch(word):
            return cls(_short_enough(username), pod_uid=word)
        raise ValueError(f"not an owner: {text!r}; {word!r} is no pod's UID and no credential's id")


def _short_enough(username: str) -> str:
    if len(username) > LONGEST_USERNAME:
        raise ValueError(f"a username of {len(username)} characters can't hold a lock")
    return username


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
