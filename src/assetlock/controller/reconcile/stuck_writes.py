"""Which writes can't be made for now, and when each is worth another try.

What the API server refuses is told of at once. Most that fails otherwise passes, so it is tried again a few times
before. The pauses grow with each failure, of whatever kind, until the write is made.
"""

from __future__ import annotations

import collections
import dataclasses

from assetlock.controller.clock import Clock
from assetlock.controller.keys import AssetKey, Key
from assetlock.core import names
from assetlock.core.stuck import Stuck, Subject
from assetlock.kube.errors import AlreadyExists, ApiError, KubeError

PATIENCE = 0.7
"""Seconds after which nobody waits for an answer any more: what follows from it is done when it comes."""

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 10.0
FORGIVEN = 2
"""So many failures that may pass are tried again before they are told of."""

MOST_UNANSWERED = 4
"""So many writes of one kind in one namespace may be without an answer: each keeps a connection."""


@dataclasses.dataclass(slots=True)
class _Trouble:
    stuck: Stuck
    failures: int = 0
    until: float = 0.0
    unanswered: bool = False
    keys: set[Key] = dataclasses.field(default_factory=set)


class StuckWrites:
    """By what they are about."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubles: dict[Subject, _Trouble] = {}
        self._unanswered: collections.Counter[tuple[str, str | None]] = collections.Counter()

    def of(self, key: Key) -> dict[Subject, Stuck]:
        """What can't be written now, of what may be decided on about this."""
        now = self._clock.monotonic()
        return {
            subject: trouble.stuck
            for subject, trouble in self._troubles.items()
            if _is_blocked(trouble, now)
            and (subject.namespace in (key.namespace, None) or key in trouble.keys)
        }

    def recheck_at(self, key: Key) -> float | None:
        """When the first of what concerns this is worth another try, on the monotonic clock."""
        now = self._clock.monotonic()
        return min(
            (
                trouble.until
                for subject, trouble in self._troubles.items()
                if trouble.until > now and (key in trouble.keys or _is_lease_of(subject, key))
            ),
            default=None,
        )

    def unanswered(self, key: Key, subject: Subject, why: str) -> None:
        """There is no answer yet: what it was before, it is until there is."""
        trouble = self._trouble(key, subject, Stuck(why, failed=False))
        if not trouble.unanswered:
            trouble.unanswered = True
            self._unanswered[subject.kind, subject.namespace] += 1

    def hang(self, subject: Subject) -> bool:
        """Whether so much of this kind is without an answer there that no more is to be sent."""
        return self._unanswered[subject.kind, subject.namespace] >= MOST_UNANSWERED

    def failed(self, key: Key, subject: Subject, error: Exception | str) -> None:
        """It is tried again later."""
        self._answered(subject)
        told = _is_told_at_once(error)
        trouble = self._trouble(key, subject, Stuck(str(error), failed=told))
        trouble.failures += 1
        trouble.stuck = Stuck(str(error), failed=told or trouble.failures > FORGIVEN)
        pause = min(FIRST_PAUSE * 2.0 ** (trouble.failures - 1), LONGEST_PAUSE)
        asked = error.retry_after if isinstance(error, ApiError) else None
        trouble.until = self._clock.monotonic() + max(pause, asked or 0.0)

    def made(self, subject: Subject) -> None:
        """It went through."""
        self._answered(subject)
        self._troubles.pop(subject, None)

    def answered(self, subject: Subject) -> None:
        """There is an answer, by which nothing is known but that it has to be decided again."""
        self._answered(subject)
        trouble = self._troubles.get(subject)
        if trouble is not None and not trouble.failures:
            del self._troubles[subject]

    def forget(self) -> None:
        """Of what another decides on meanwhile nothing is known."""
        self._troubles.clear()
        self._unanswered.clear()

    def retire(self) -> None:
        """Forget what nobody has tried again for long."""
        long_ago = self._clock.monotonic() - 10 * LONGEST_PAUSE
        self._troubles = {
            subject: trouble
            for subject, trouble in self._troubles.items()
            if trouble.unanswered or trouble.until > long_ago
        }

    def _trouble(self, key: Key, subject: Subject, stuck: Stuck) -> _Trouble:
        trouble = self._troubles.setdefault(subject, _Trouble(stuck))
        trouble.keys.add(key)
        return trouble

    def _answered(self, subject: Subject) -> None:
        trouble = self._troubles.get(subject)
        if trouble is not None and trouble.unanswered:
            trouble.unanswered = False
            self._unanswered[subject.kind, subject.namespace] -= 1


def _is_blocked(trouble: _Trouble, now: float) -> bool:
    return trouble.unanswered or trouble.until > now


def _is_told_at_once(error: Exception | str) -> bool:
    if isinstance(error, ApiError):
        return error.is_refusal or isinstance(error, AlreadyExists)
    return not isinstance(error, KubeError)


def _is_lease_of(subject: Subject, key: Key) -> bool:
    """Whether what is stuck is a Lease of this asset, whoever it was that tried to write it."""
    of_kind = subject.kind == "Lease" and subject.namespace == key.namespace
    return of_kind and isinstance(key, AssetKey) and names.slot_of(key.name, subject.name) is not None
