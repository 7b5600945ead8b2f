"""Locks in Kubernetes: each acquisition is an AssetLock.

Why an AssetLock and not a Lease made by hand, which competes for the same thing: it waits in the asset's queue,
locks several assets as one and whole assets with several slots, asks for the verb ``lock``, and needs no rights
on Leases. It costs no more where targets are fenced, as both wait for the operator's announcement: 10.1 raw Lease
creates against 10.2, measured on a busy machine with one target.

The announcement is what is waited for: a block is entered when nobody else's write to a target can commit any more.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from assetlock.client import clock
from assetlock.client.api import (
    ASSETLOCKS,
    ASSETS,
    AnswerLost,
    Api,
    ApiError,
    ClientError,
    Config,
    Conflict,
    Invalid,
    NotFound,
    Object,
    Unreachable,
    load_config,
)
from assetlock.client.backends.kubernetes import assets, bodies, explain
from assetlock.client.backends.kubernetes.assets import Assets
from assetlock.client.backends.kubernetes.record import HELD, Record
from assetlock.client.backends.kubernetes.watcher import Watcher
from assetlock.client.locking import naming, process
from assetlock.client.locking.backend import Backend, Grant, Refusal, Renewal, Renewed, Wanted
from assetlock.client.locking.errors import BackendUnavailable, LockError

PATIENCE = 15.0
"""Seconds within which the operator has to say something."""

TIMEOUT = 10.0
"""Seconds for an answer of the API server."""

LATE = 15.0
"""Seconds after which a request that was sent does not arrive any more."""

_CHECK = 0.05


class KubernetesBackend(Backend):
    """Locks in a namespace of a cluster: by default those that kubectl would use, or the pod's own.

    ``scope`` is what a function's own name begins with; by default ``APPLICATION_NAME`` and its environment.
    """

    def __init__(
        self, config: Config | None = None, *, namespace: str | None = None, scope: str | None = None
    ) -> None:
        self._config = config or load_config()
        self._namespace = namespace or self._config.namespace
        self._scope = scope or naming.application()
        self._open()
        process.remember(self)

    @classmethod
    def from_environment(cls) -> KubernetesBackend:
        """As ``KUBECONFIG`` or the pod's ServiceAccount say. `LockError` if neither is there."""
        try:
            return cls()
        except ClientError as failure:
            raise LockError(f"no Kubernetes backend is configured: {failure}") from failure

    def _open(self) -> None:
        self._process = uuid.uuid4().hex
        self._api = Api(self._config, timeout=TIMEOUT, user_agent="assetlock-python")
        self._watcher = Watcher(self._api, self._namespace, self._process)
        self._assets = Assets(self._api, self._namespace)
        self._records: dict[str, Record] = {}
        self._mutex = threading.Lock()

    def forked(self) -> None:
        """Use connections of this process's own."""
        self._open()

    def attempt(self, wanted: Wanted, wait: float) -> Grant | Refusal:
        """Create the AssetLock, the first time, and see what the operator says."""
        with self._mutex:
            record = self._records.get(wanted.id)
            if record is None:
                record = Record(wanted, f"{self._names(wanted)[wanted.names[0]][:200]}-{wanted.id[:16]}")
                self._records[wanted.id] = record
        try:
            if record.uid is None:
                self._create(record, wait)
            return self._outcome(record, wait)
        except ClientError as failure:
            raise explain.error(failure, wanted, self._config.server) from failure

    def listen(self, wanted: Wanted, wake: Callable[[], None]) -> Callable[[], None]:
        """Wake when the AssetLock changes."""
        with self._mutex:
            record = self._records[wanted.id]
        return record.add_wake(wake)

    def renew(self, grants: Sequence[tuple[Grant, float]], timeout: float) -> list[Renewal]:
        """One after the other; the API server's word counts, the operator need not have seen it."""
        ends = time.monotonic() + timeout
        return [
            self._renew(_record(grant), bodies.whole_seconds(ttl), ends - time.monotonic())
            for grant, ttl in grants
        ]

    def release(self, grant: Grant) -> bool:
        """Delete the AssetLock."""
        record = _record(grant)
        with record.changed:
            held, record.ending = not record.final, True
        try:
            self._delete(record)
        except ClientError as failure:
            raise explain.error(failure, grant.wanted, self._config.server) from failure
        self._forget(record)
        return held

    def abandon(self, wanted: Wanted) -> None:
        """Delete the AssetLock, if there is one, or may still come."""
        with self._mutex:
            record = self._records.get(wanted.id)
        if record is None:
            return
        record.ending = True
        if record.uid is None and not record.uncertain:
            self._forget(record)
            return
        try:
            found = self._delete(record)
        except ClientError as failure:
            raise explain.error(failure, wanted, self._config.server) from failure
        if not found and record.uncertain and clock.now() - record.uncertain < LATE:
            raise BackendUnavailable(f"the request for {wanted.shown} may still arrive", asset=wanted.shown)
        self._forget(record)

    def is_current(self, grant: Grant) -> bool:
        """Read the AssetLock."""
        record = _record(grant)
        try:
            seen = self._api.get(ASSETLOCKS.path(self._namespace, record.name))
        except NotFound:
            return False
        except ClientError as failure:
            raise explain.error(failure, grant.wanted, self._config.server) from failure
        record.see(seen)
        return bool(seen["metadata"]["uid"] == record.uid and record.state == HELD)

    def holders(self, name: str) -> list[str]:
        """Who holds the Asset, since when and until when."""
        wanted = Wanted("", (name,), 0)
        try:
            asset = self._api.get(ASSETS.path(self._namespace, name))
        except ClientError as failure:
            raise explain.error(failure, wanted, self._config.server) from failure
        return [explain.holder(entry) for entry in asset.get("status", {}).get("holders") or ()]

    def _names(self, wanted: Wanted) -> dict[str, str]:
        """The Asset of each name."""
        if not wanted.made:
            return {name: name for name in wanted.names}
        return {name: assets.asset_name(self._scope, name) for name in wanted.names}

    def _create(self, record: Record, wait: float) -> None:
        names = self._names(record.wanted)
        if record.wanted.made or record.wanted.max_locks is not None:
            self._assets.provide(record.wanted, names)
        record.sent = record.sent or clock.now()
        self._watcher.add(record)
        record.ttl = bodies.whole_seconds(record.wanted.ttl)
        path, body = (
            ASSETLOCKS.path(self._namespace),
            bodies.assetlock(record, list(names.values()), wait, self._scope, self._process),
        )
        before, record.uncertain = record.uncertain, clock.now()
        try:
            record.see(self._created(record, path, body))
        except (Unreachable, ApiError) as failure:
            if not before and (isinstance(failure, Unreachable) or not failure.transient):
                record.uncertain = 0.0  # nothing was sent, or it was refused
            raise

    def _created(self, record: Record, path: str, body: Object) -> Object:
        """The AssetLock, though an answer may be lost."""
        try:
            try:
                return self._api.create(path, body)
            except AnswerLost:
                return self._api.create(path, body)
        except Conflict:  # a request whose answer was lost has arrived
            return self._api.get(ASSETLOCKS.path(self._namespace, record.name))

    def _outcome(self, record: Record, wait: float) -> Grant | Refusal:
        """What the operator says: at once if somebody waits for it anyway, else as soon as it does."""
        self._look(record, lambda: bool(record.state == HELD or record.final or (wait and record.state)))
        if record.state == HELD:
            if record.waits_long():
                self._begin_again(record)
            return self._grant(record)
        if not record.state:
            said = f"{record.wanted.shown} can't be locked now: no operator answers. Its controller does not lead."
            raise BackendUnavailable(said, asset=record.wanted.shown, retry_after=1.0)
        refused = explain.refusal(record)
        if refused.holders or not record.final:
            return refused
        holders, until = self._held_by(record)
        return dataclasses.replace(refused, holders=holders, until=until)

    def _held_by(self, record: Record) -> tuple[tuple[str, ...], datetime.datetime | None]:
        """Who holds what is wanted, as far as that can be read, and when the first of them expires."""
        found: list[Any] = []
        for asset in self._names(record.wanted).values():
            with contextlib.suppress(ClientError):
                seen = self._api.get(ASSETS.path(self._namespace, asset))
                found += seen.get("status", {}).get("holders") or []
        ends = [entry["expireTime"] for entry in found if entry.get("expireTime")]
        until = datetime.datetime.fromisoformat(min(ends)) if ends else None
        return tuple(explain.holder(entry) for entry in found), until

    def _look(self, record: Record, seen: Callable[[], bool]) -> None:
        """Wait for something to be seen of it; reads it now and then, should the watch be late."""
        ends, pause = time.monotonic() + PATIENCE, 0.5
        while not seen() and time.monotonic() < ends:
            with record.changed:
                came = record.changed.wait_for(seen, timeout=pause)
            if not came:
                record.see(self._api.get(ASSETLOCKS.path(self._namespace, record.name)))
                pause = min(pause * 2, 4.0)

    def _begin_again(self, record: Record) -> None:
        """After a long wait nobody knows how long ago the lock was granted: let its term begin again."""
        answer = self._renew(record, record.ttl, TIMEOUT)
        if isinstance(answer, LockError):
            raise answer

    def _grant(self, record: Record) -> Grant:
        back = {asset: name for name, asset in self._names(record.wanted).items()}
        if len(record.wanted.names) == 1:
            tokens = {record.wanted.names[0]: int(record.status.get("fencingToken") or 0)}
        else:
            tokens = {back[one["name"]]: int(one.get("fencingToken") or 0) for one in record.status["assets"]}
        now = clock.now()
        return Grant(record.wanted, tokens, record.until - now, record, since=now, when_lost=record.when_lost)

    def _renew(self, record: Record, ttl: int, timeout: float) -> Renewal:
        if record.final:
            return record.loss()
        if timeout <= 0:
            return BackendUnavailable(f"there was no time to renew {record.wanted.shown}")
        sent, longer = clock.now(), ttl > record.ttl
        path = ASSETLOCKS.path(self._namespace, record.name)
        try:
            seen = self._api.patch(path, bodies.renewal(record, ttl), timeout=timeout)
        except (NotFound, Conflict):
            return record.gone()
        except Invalid:
            return self._ended(record)
        except ClientError as failure:
            return explain.error(failure, record.wanted, self._config.server)
        record.ttl = ttl
        record.renewed(sent, seen)
        if longer:  # the asset's maxTTL may allow less
            with record.changed:
                record.changed.wait_for(
                    record.is_renewal_seen, timeout=max(timeout - (clock.now() - sent), 0)
                )
        return Renewed(record.until - sent)

    def _ended(self, record: Record) -> Renewal:
        """A renewal was refused: it has ended, unless something else is wrong with it."""
        try:
            record.see(self._api.get(ASSETLOCKS.path(self._namespace, record.name)))
        except NotFound:
            return record.gone()
        except ClientError as failure:
            return explain.error(failure, record.wanted, self._config.server)
        if record.final:
            return record.loss()
        return LockError(f"{record.wanted.shown} is not renewed", asset=record.wanted.shown)

    def _delete(self, record: Record) -> bool:
        """Whether there was one."""
        path = ASSETLOCKS.path(self._namespace, record.name)
        for again in (True, False):
            try:
                self._api.delete(path, uid=record.uid)
            except AnswerLost:
                if not again:
                    raise
            except (NotFound, Conflict):
                return False
            else:
                return True
        return True

    def _forget(self, record: Record) -> None:
        self._watcher.remove(record)
        with self._mutex:
            self._records.pop(record.wanted.id, None)


def _record(grant: Grant) -> Record:
    record = grant.state
    assert isinstance(record, Record)
    return record
