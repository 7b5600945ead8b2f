"""The fence on a target: one annotation for each asset that claims it.

The value's first line is the UID of the object that it was written for, since controllers copy annotations to
children, where a stamp must mean nothing. Each further line is a holder: fencing token, then the identity; or, with
the token 0, a user who may go on updating, but not deleting. While it is locked for maintenance the maintainers have
the lines of holders, and whoever made the lock has one that fits no requester and ends with the reason. The policy
inside the API server reads the same lines (CEL has no JSON).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping

from assetlock.core.identity import Identity
from assetlock.core.observation import ObservedTarget
from assetlock.model.limits import MOST_ANNOTATIONS

ROOM_FOR_STAMPS = 50
"""So many fewer annotations may be there when an object is stamped: other assets and its holder add theirs."""

LONGEST_TOKEN = 18
"""Digits: what has more does not fit into the Asset's status, and was written by somebody else."""

EXEMPT = 0
"""Stands for a token on the lines of those who may update. Real tokens begin at 1."""


@dataclasses.dataclass(frozen=True, slots=True)
class StampedHolder:
    """A holder as the fence knows it."""

    token: int
    identity: Identity

    def __str__(self) -> str:
        return f"{self.token} {self.identity}"


@dataclasses.dataclass(frozen=True, slots=True)
class Stamp:
    """Who may write to the object with this UID, and the usernames of those who may update it."""

    uid: str
    holders: tuple[StampedHolder, ...]
    exempt: tuple[str, ...] = ()

    @property
    def told(self) -> tuple[StampedHolder, ...]:
        """Whom to name to those who are refused: not the maintainers."""
        closing = tuple(holder for holder in self.holders if holder.identity.is_closing)
        return closing or self.holders

    @property
    def token(self) -> int:
        """The highest token in the stamp; 0 when it names nobody."""
        return max((holder.token for holder in self.holders), default=0)

    def __str__(self) -> str:
        return "\n".join([self.uid, *holder_lines(self.holders, self.exempt)])

    @classmethod
    def parse(cls, text: str) -> Stamp:
        """Read what ``str`` wrote; raises ValueError for anything else."""
        uid, *lines = text.split("\n")
        return cls(uid, *holders_on(lines))


def holder_lines(holders: Iterable[StampedHolder], exempt: Iterable[str]) -> list[str]:
    """A line for each holder, then for each user who may update."""
    return [
        *map(str, holders),
        *(str(StampedHolder(EXEMPT, Identity(username))) for username in exempt),
    ]


def holders_on(lines: Iterable[str]) -> tuple[tuple[StampedHolder, ...], tuple[str, ...]]:
    """The holders and the exempt on such lines; raises ValueError for anything else."""
    holders = []
    for line in lines:
        token, _, identity = line.partition(" ")
        if not (token.isascii() and token.isdecimal() and len(token) <= LONGEST_TOKEN):
            raise ValueError(f"not a fencing token: {token!r}")
        holders.append(StampedHolder(int(token), Identity.parse(identity)))
    return (
        tuple(holder for holder in holders if holder.token != EXEMPT),
        tuple(holder.identity.username for holder in holders if holder.token == EXEMPT),
    )


def unstampable(target: ObservedTarget) -> str | None:
    """Why a stamp on this object would not count, ready to be read; ``None`` if it would."""
    count = len(target.annotations)
    if count <= MOST_ANNOTATIONS - ROOM_FOR_STAMPS:
        return None
    return (
        f"{target.target.kind} {target.target.name} has {count} annotations, of which the fence looks at no more "
        f"than {MOST_ANNOTATIONS}: remove some"
    )


def stamp_of(annotations: Mapping[str, str], key: str, uid: str) -> Stamp | None:
    """The stamp under ``key`` if it was written for the object with ``uid`` and can be read."""
    stamp = _parsed(annotations.get(key, ""))
    return stamp if stamp and stamp.uid == uid else None


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> Stamp | None:
    """The stamp if it can be read: each is looked at many times before it changes."""
    try:
        return Stamp.parse(text) if text else None
    except ValueError:
        return None
