"""One AssetLock from asking to release: what `assetlock run` and programs do with it.

The name is chosen before the first call, so that a request whose answer was lost can be repeated, and a lock that
nobody wants any more can be deleted, without touching anybody else's. Release and renewal carry the lock's UID.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from assetlock.client import clock
from assetlock.client.api import (
    ASSETLOCKS,
    AnswerLost,
    Api,
    ApiError,
    ClientError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Object,
    Unreachable,
)
from assetlock.client.session.requests import Lost, NobodyAnswers, NotAcquired, Request, new_name
from assetlock.client.session.term import Term

PATIENCE: float = 15.0
"""Seconds for which a failing API server is tried again, and for which an operator may say nothing."""

CLEANING: float = 2.0
"""Seconds for which a lock that is not wanted any more is tried to be deleted."""

_PAUSE = 0.2
TERMINAL = ("Released", "Expired", "Revoked", "Failed", "Quarantined")


class Lock:
    """An AssetLock that this process has asked for. Calls block; they may come from any thread, one at a time."""

    def __init__(self, api: Api, request: Request, name: str | None = None) -> None:
        self.name = name or new_name(request.assets)
        self.request = request if request.holder_id else dataclasses.replace(request, holder_id=self.name)
        self.uid: str | None = None
        self.status: Mapping[str, Any] = {}
        self._api = api
        self._generation = 0
        self._sent = 0.0
        self._stored: str | None = None
        self._tried: float | None = None
        self._version = ""
        self._first: Object = {}
        self._begun = False
        self._mutex = threading.Lock()

    @property
    def path(self) -> str:
        """Where the AssetLock is."""
        return ASSETLOCKS.path(self.request.namespace, self.name)

    @property
    def holder_id(self) -> str:
        """What tells this run from others of the same user: given, or the lock's name."""
        return self.request.holder_id or self.name

    @property
    def tokens(self) -> tuple[int, ...]:
        """The fencing tokens, in the order of the assets that were asked for."""
        if self.status.get("fencingToken") is not None:
            return (self.status["fencingToken"],)
        found = {asset["name"]: asset.get("fencingToken", 0) for asset in self.status.get("assets") or ()}
        return tuple(found.get(name, 0) for name in self.request.assets)

    def acquire(self, progress: Callable[[str], None] = lambda _: None) -> Term:
        """Ask, wait as long as was asked for, and give the term once the lock is held.

        ``progress`` gets a sentence whenever what it waits for changes. Raises `NotAcquired`, `NobodyAnswers` or
        another `ClientError`; then, and if it is interrupted, nothing is left behind as far as the server answers.
        """
        try:
            since = self._create()
            self._settle(progress)
            term = Term(self.status, since=since, seen=clock.now())
            waited_long = clock.now() - since > term.length / 6
            return self._new_term(term) if waited_long else term
        except BaseException:
            with contextlib.suppress(ClientError):
                self.release(patience=CLEANING)
            raise

    def renew(self, term: Term) -> None:
        """Ask for a new term; `confirm` says when it counts. Raises `Lost` if there is no such lock any more.

        The server stores its own time, and keeps the last one where that is young. After an answer was lost nobody
        knows which try it has stored, so the term counts from the first.
        """
        self._tried = self._tried or clock.now()
        limit = max(1.0, min(10.0, term.length / 6))
        try:
            changed = self._api.patch(self.path, _renewal(self.uid), timeout=limit)
        except (NotFound, Conflict, Invalid) as error:
            raise self._refused(error) from error
        with self._mutex:
            if (stored := changed["spec"].get("renewTime")) != self._stored:
                self._sent, self._generation = self._tried, changed["metadata"]["generation"]
            self._stored, self._tried = stored, None
        self.confirm(changed, term)

    def confirm(self, seen: Object, term: Term) -> bool:
        """Bring the term up to date with what was seen of the lock; whether the last renewal counts by now."""
        self._check(seen)
        status = seen.get("status", {})
        with self._mutex:
            confirmed = 0 < self._generation <= int(status.get("observedGeneration", 0))
            if confirmed:
                self.status = status
                term.renewed(status, self._sent)
        return confirmed

    def read(self, timeout: float | None = None) -> Object:
        """The AssetLock as it is now; raises `Lost` if it is gone."""
        try:
            return self._api.get(self.path, timeout=timeout)
        except NotFound as error:
            raise Lost(f"AssetLock {self.name} is gone: somebody has deleted it") from error

    def watch(self, version: str | None = None, seconds: int = 300) -> Iterator[tuple[str, Object]]:
        """What happens to the lock from a version on."""
        params = {"fieldSelector": f"metadata.name={self.name}"}
        if version:
            params["resourceVersion"] = version
        return iter(self._api.watch(ASSETLOCKS.path(self.request.namespace), params, seconds=seconds))

    def release(self, patience: float = PATIENCE) -> None:
        """Delete the lock, and no other of that name; a failing server is tried again for ``patience`` seconds."""
        if not self._begun:
            return
        for _ in _tries(patience):
            try:
                self._api.delete(self.path, uid=self.uid, timeout=max(patience, 1.0))
            except (NotFound, Conflict) as error:
                if self.uid is not None:
                    return
                failure: ClientError = error  # whoever gave up asking does not know whether that comes yet
            except (AnswerLost, Unreachable, ApiError) as error:
                if not _may_pass(error):
                    raise
                failure = error
            else:
                return
        if not isinstance(failure, NotFound):
            raise failure

    def _create(self) -> float:
        """Create it, and say when that was sent for the first time."""
        sent = clock.now()
        body = self.request.body(self.name)
        for _ in _tries(PATIENCE):
            self._begun = True
            try:
                self._first = self._api.create(ASSETLOCKS.path(self.request.namespace), body)
            except Conflict:  # an earlier try has made it, although its answer was lost
                self._first = self.read()
            except (AnswerLost, Unreachable, ApiError) as error:
                if not _may_pass(error):
                    raise explained(error) from error
                failure: ClientError = error
                continue
            self._know(self._first)
            return sent
        raise failure

    def _know(self, seen: Object) -> None:
        self.uid = seen["metadata"]["uid"]
        self.status = seen.get("status") or {}
        self._version = seen["metadata"]["resourceVersion"]

    def _settle(self, progress: Callable[[str], None]) -> None:
        """Wait until it is held."""
        begun = time.monotonic()
        told = ""
        for seen in self._seen_until(begun + self.request.waits + PATIENCE):
            self._know(seen)
            state, condition = self.status.get("state"), condition_of(self.status, "Settled")
            if state == "Held":
                return
            if state in TERMINAL:
                raise NotAcquired(_ended(self.request, condition, state), condition.get("reason", state))
            message = condition.get("message", "")
            if not state and time.monotonic() - begun >= PATIENCE:
                message = "no operator answers yet"
            if message and message != told:
                told = message
                progress(f"waiting for {', '.join(self.request.assets)}: {message}")
        if not self.status.get("state"):
            raise NobodyAnswers("no operator answers: its controller does not run, or does not lead")
        raise NobodyAnswers(f"the operator does not answer any more; last it said: {told}")

    def _seen_until(self, deadline: float) -> Iterator[Object]:
        """The lock as it changes, first as it is, until then; and now and then although it has not changed."""
        yield self._first
        while (left := deadline - time.monotonic()) > 0:
            try:
                yield from self._changes(max(1, int(min(PATIENCE, left))))
            except Forbidden:
                time.sleep(_PAUSE)
            except (AnswerLost, Unreachable, ApiError) as error:
                if not _may_pass(error) and not isinstance(error, Gone):
                    raise
                time.sleep(_PAUSE)
            if (seen := self._current()) is not None:
                yield seen

    def _changes(self, seconds: int) -> Iterator[Object]:
        for kind, seen in self.watch(self._version, seconds):
            if kind == "DELETED":
                raise NotAcquired(f"AssetLock {self.name} was deleted while it waited", "Deleted")
            yield seen

    def _current(self) -> Object | None:
        try:
            return self._api.get(self.path)
        except NotFound as error:
            raise NotAcquired(f"AssetLock {self.name} was deleted while it waited", "Deleted") from error
        except (AnswerLost, Unreachable, ApiError) as error:
            if not _may_pass(error):
                raise
            return None

    def _new_term(self, term: Term) -> Term:
        """After a long wait nobody knows exactly how long ago the lock was granted: begin its term again."""
        deadline = time.monotonic() + PATIENCE
        self.renew(term)
        while not self.confirm(self.read(), term):
            if time.monotonic() > deadline:
                raise NobodyAnswers("the operator has granted the lock, but does not renew it")
            time.sleep(_PAUSE)
        return Term(self.status, since=self._sent, seen=clock.now(), length=term.length)

    def _refused(self, error: ApiError) -> ApiError:
        """The refusal of a renewal; `Lost` is raised instead if the lock has ended."""
        with contextlib.suppress(AnswerLost, Unreachable, ApiError):
            self._check(self.read())
        return error

    def _check(self, seen: Object) -> None:
        state = seen.get("status", {}).get("state")
        if seen["metadata"]["uid"] != self.uid or state in TERMINAL:
            condition = condition_of(seen.get("status", {}), "Settled")
            raise Lost(f"{state or 'gone'}: {condition.get('message', '')}".rstrip(": "))


def _tries(patience: float) -> Iterator[int]:
    """One try, and more with growing pauses until the patience has run out."""
    deadline, pause, number = time.monotonic() + patience, 0.1, 0
    while True:
        yield number
        number += 1
        if time.monotonic() + pause > deadline:
            return
        time.sleep(pause)
        pause = min(pause * 2, 2.0)


def _renewal(uid: str | None) -> Object:
    """The patch that renews that very lock. Any time will do that is not the one of the last renewal."""
    now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    return {"metadata": {"uid": uid}, "spec": {"renewTime": f"{now.isoformat(timespec='microseconds')}Z"}}


def _may_pass(error: Exception) -> bool:
    if isinstance(error, ApiError):
        return error.transient
    return isinstance(error, (AnswerLost, Unreachable))


def explained(error: ClientError) -> ClientError:
    """The error of a request to create an AssetLock, or one that says what its 404 means."""
    if isinstance(error, NotFound) and not error.details.get("name"):
        return NobodyAnswers(
            "assetlock is not installed in this cluster: it serves no assetlocks.assetlock.dev"
        )
    return error


def condition_of(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The condition of this type; an empty one if there is none yet."""
    return next((one for one in status.get("conditions") or () if one["type"] == kind), {})


def _ended(request: Request, condition: Mapping[str, Any], state: str) -> str:
    what = f"asset {request.assets[0]}" if len(request.assets) == 1 else f"assets {', '.join(request.assets)}"
    return f"{what} in namespace {request.namespace} is not locked: {condition.get('message') or state}"
