"""The one thread of a process that renews its locks and notices their loss.

It does not wait for the program: neither a blocked event loop nor a body that computes keeps it from renewing.
Each of its calls is bounded by the nearest deadline, so that a backend that hangs delays no loss.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from assetlock.client import clock
from assetlock.client.locking.backend import Renewal, Renewed
from assetlock.client.locking.errors import BackendUnavailable, LockLost
from assetlock.client.locking.term import Term

log = logging.getLogger("assetlock")

LONGEST_SLEEP = 1.0
"""Seconds: a machine that was suspended is noticed so soon after it runs again."""

LONGEST_CALL = 5.0
TOGETHER = 0.02
"""What is due within so many seconds is renewed in one go."""

AT_ONCE = 100
"""So many locks at most in one call of a backend."""


@dataclass(order=True, slots=True)
class _Entry:
    when: float
    number: int
    term: Term = field(compare=False)


class Renewer:
    """Starts its thread with the first lock; the thread sleeps while there is none."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._entries: list[_Entry] = []
        self._terms: dict[int, Term] = {}
        self._numbered: dict[int, int] = {}
        """The number of the one entry of each that counts."""
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def add(self, term: Term) -> None:
        """Renew it from now on, or at other times than before."""
        with self._changed:
            self._terms[id(term)] = term
            self._push(min(term.renew_at, term.deadline), term)

    def remove(self, term: Term) -> None:
        """Leave it alone from now on."""
        with self._changed:
            self._terms.pop(id(term), None)
            self._numbered.pop(id(term), None)
            if len(self._entries) > 2 * len(self._terms) + 64:
                self._entries = [entry for entry in self._entries if self._matters(entry)]
                heapq.heapify(self._entries)

    def _matters(self, entry: _Entry) -> bool:
        return self._numbered.get(id(entry.term)) == entry.number

    def _push(self, when: float, term: Term) -> None:
        entry = _Entry(when, next(self._numbers), term)
        self._numbered[id(term)] = entry.number
        heapq.heappush(self._entries, entry)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="assetlock-renewer", daemon=True)
            self._thread.start()
        elif self._entries[0] is entry:
            self._changed.notify()

    def _run(self) -> None:
        while True:
            try:
                self._serve(self._due())
            except Exception:
                log.exception("renewing failed unexpectedly; it goes on")

    def _due(self) -> list[Term]:
        """Wait for something to do."""
        with self._changed:
            while not self._entries or self._entries[0].when > clock.now():
                # With nothing to renew the next lock wakes us; with something, a suspended machine may have.
                ahead = self._entries[0].when - clock.now() if self._entries else None
                self._changed.wait(None if ahead is None else min(max(ahead, 0), LONGEST_SLEEP))
            soon, due = clock.now() + TOGETHER, []
            while self._entries and self._entries[0].when <= soon:
                entry = heapq.heappop(self._entries)
                if self._matters(entry):
                    due.append(entry.term)
            return due

    def _serve(self, due: Iterable[Term]) -> None:
        by_backend: dict[int, list[Term]] = {}
        for term in due:
            if clock.now() >= term.deadline or term.loss is not None:
                self._lose(term, term.out_of_time())
            else:
                by_backend.setdefault(id(term.backend), []).append(term)
        for terms in by_backend.values():
            for start in range(0, len(terms), AT_ONCE):
                self._renew(terms[start : start + AT_ONCE])

    def _renew(self, terms: list[Term]) -> None:
        free: list[Term] = []
        busy: list[Term] = []
        for term in terms:
            (free if term.calling.acquire(blocking=False) else busy).append(term)
        try:
            if free:
                self._call(free)
        finally:
            for term in free:
                term.calling.release()
        for term in busy:  # its owner is just extending it
            self._again(term, clock.now() + LONGEST_SLEEP / 10)

    def _call(self, terms: list[Term]) -> None:
        asked = clock.now()
        wanted = [(term.grant, term.next_ttl()) for term in terms]
        try:
            answers = terms[0].backend.renew(wanted, self._timeout(asked))
        except Exception as error:
            if not isinstance(error, BackendUnavailable):
                log.exception("renewing failed unexpectedly")
            answers = [BackendUnavailable(str(error))] * len(terms)
        for term, answer in zip(terms, answers, strict=True):
            self._take(term, answer, asked)

    def _take(self, term: Term, answer: Renewal, asked: float) -> None:
        if isinstance(answer, Renewed):
            term.confirm(asked, answer.ttl)
            self._again(term, min(term.renew_at, term.deadline))
        elif isinstance(answer, LockLost):
            self._lose(term, answer)
        else:
            if term.trouble is None:
                log.warning("%s is not renewed, trying again: %s", term.grant.wanted.shown, answer)
            term.trouble = answer
            ahead = term.deadline - clock.now()
            self._again(term, clock.now() + min(max(ahead / 5, 0.05), LONGEST_SLEEP, max(ahead, 0)))

    def _again(self, term: Term, when: float) -> None:
        with self._changed:
            if id(term) in self._terms:
                self._push(when, term)

    def _lose(self, term: Term, loss: LockLost) -> None:
        self.remove(term)
        term.lose(loss)

    def _timeout(self, asked: float) -> float:
        """How long a call may take without making a loss known too late."""
        with self._changed:
            nearest = min((term.deadline for term in self._terms.values()), default=asked + LONGEST_CALL)
        return min(max(nearest - asked, 0.05), LONGEST_CALL)
