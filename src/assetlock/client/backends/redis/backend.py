"""Locks in Redis.

Kept: never more than max_locks holders, and a fencing token that grows, as long as the Redis server that answers
knows of the locks it has granted. **Not kept across a fail-over**: replication is asynchronous, so a replica that
becomes the master may not know of the locks of the last moments, and grants them again. The holder finds out at
its next renewal; until then two hold. The tokens still grow, since they follow the clock, so what compares tokens
refuses the first one.
"""

from __future__ import annotations

import datetime
import logging
import math
import os
import socket
import time
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any

from redis import Redis
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
)
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from assetlock.client.backends.redis import scripts
from assetlock.client.backends.redis.config import RedisConfig
from assetlock.client.backends.redis.listener import Listener
from assetlock.client.backends.redis.scripts import Script
from assetlock.client.locking import naming, process
from assetlock.client.locking.backend import Backend, Grant, Refusal, Renewal, Renewed, Wanted
from assetlock.client.locking.errors import BackendUnavailable, LockDenied, LockError, LockLost

log = logging.getLogger("assetlock")

REMEMBERED = 300.0
"""Seconds for which the max_locks of a caller that holds nothing still counts."""

_DOWN = (RedisConnectionError, RedisTimeoutError, ReadOnlyError, OutOfMemoryError, OSError)
_REFUSED = (AuthenticationError, AuthorizationError, NoPermissionError)


class RedisBackend(Backend):
    """Locks in the Redis of ``config``; their keys begin with ``assetlock:{<scope>:``.

    ``scope`` keeps programs apart; by default it is ``APPLICATION_NAME`` and ``APPLICATION_ENVIRONMENT``.
    """

    def __init__(self, config: RedisConfig | None = None, *, scope: str | None = None) -> None:
        self._config = config or RedisConfig()
        self._scope = scope or naming.application()
        self._holder = f"{self._scope} on {socket.gethostname()} (pid {os.getpid()})"
        self._warned: set[tuple[str, int, int]] = set()
        self._open()
        process.remember(self)

    @classmethod
    def from_environment(cls) -> RedisBackend:
        """As ``REDIS_HOST`` and its kin say."""
        return cls(RedisConfig.from_environment())

    def _open(self) -> None:
        self._client: Redis = self._config.connect()
        self._listener = Listener(self._config.connect)

    def forked(self) -> None:
        """Use connections of this process's own."""
        self._holder = f"{self._scope} on {socket.gethostname()} (pid {os.getpid()})"
        self._open()

    def attempt(self, wanted: Wanted, wait: float) -> Grant | Refusal:
        """One script. There is no queue: whoever comes first when a slot is free gets it."""
        del wait
        most = wanted.max_locks or 1
        arguments = [wanted.id, _milliseconds(wanted.ttl), self._holder, _memory(wanted.ttl)]
        arguments += [most for _ in wanted.names]
        answer = self._run(scripts.ACQUIRE, wanted, arguments)
        kind = answer[0]
        if kind == b"granted":
            self._compare(wanted, most, answer[2])
            tokens = dict(zip(wanted.names, map(int, answer[3]), strict=True))
            return Grant(wanted, tokens, wanted.ttl, tuple(answer[1]))
        if kind == b"gone":
            raise LockError(f"the acquisition of {wanted.shown} was given up", asset=wanted.shown)
        self._compare(wanted, most, answer[2])
        return _refusal(int(answer[1]), answer[3])

    def listen(self, wanted: Wanted, wake: Callable[[], None]) -> Callable[[], None]:
        """Wake when a slot of one of the names is freed."""
        return self._listener.listen(self._bases(wanted), wake)

    def renew(self, grants: Sequence[tuple[Grant, float]], timeout: float) -> list[Renewal]:
        """All in one go."""
        ends = time.monotonic() + timeout
        calls = [self._renewal(grant, ttl) for grant, ttl in grants]
        try:
            answers = self._pipeline(calls, ends)
        except RedisError as error:
            failed = self._error(error, grants[0][0].wanted)
            return [failed for _ in grants]
        return [
            self._renewed(grant, ttl, answer) for (grant, ttl), answer in zip(grants, answers, strict=True)
        ]

    def release(self, grant: Grant) -> bool:
        """Compare, delete and publish. Where the answer to it was lost it counts as held until then."""
        return bool(self._run(scripts.RELEASE, grant.wanted, [grant.wanted.id, *_slots(grant)], again=True))

    def abandon(self, wanted: Wanted) -> None:
        """Free what it has got, and leave a mark for a while: a call that is still on its way then gets nothing."""
        most = wanted.max_locks or 1
        self._run(scripts.ABANDON, wanted, [wanted.id, *(most for _ in wanted.names)])

    def is_current(self, grant: Grant) -> bool:
        """Compare without changing anything."""
        return bool(self._run(scripts.RENEW, grant.wanted, _renewal(grant, 0)))

    def holders(self, name: str) -> list[str]:
        """Program, host and process of each."""
        wanted = Wanted("", (name,), 0)
        return [str(who, "utf-8", "replace") for who in self._run(scripts.HOLDERS, wanted, [])]

    def _bases(self, wanted: Wanted) -> tuple[str, ...]:
        """The braces keep all keys of a name together, and every other character that could part them is escaped."""
        parts = (urllib.parse.quote(f"{self._scope}:{name}", safe="/:@ ") for name in wanted.names)
        return tuple(f"assetlock:{{{part}}}" for part in parts)

    def _run(self, script: Script, wanted: Wanted, arguments: Sequence[Any], *, again: bool = False) -> Any:
        keys = self._bases(wanted)
        try:
            try:
                return self._client.evalsha(script.sha, len(keys), *keys, *arguments)
            except NoScriptError:
                return self._client.eval(script.text, len(keys), *keys, *arguments)
            except (RedisConnectionError, RedisTimeoutError) as error:
                if not again or isinstance(error, AuthenticationError):
                    raise
                # The first call may have done it: then this one finds nothing, which is no loss.
                self._client.eval(script.text, len(keys), *keys, *arguments)
                return 1
        except (RedisError, OSError) as error:
            raise self._error(error, wanted) from error

    def _renewal(self, grant: Grant, ttl: float) -> tuple[Any, ...]:
        keys = self._bases(grant.wanted)
        return (len(keys), *keys, *_renewal(grant, _milliseconds(ttl)))

    def _pipeline(self, calls: Sequence[tuple[Any, ...]], ends: float) -> list[Any]:
        pool: Any = self._client.connection_pool
        connection: Any = pool.get_connection()
        try:
            answers = _answers(connection, [("EVALSHA", scripts.RENEW.sha, *call) for call in calls], ends)
            if any(isinstance(answer, NoScriptError) for answer in answers):
                answers = _answers(connection, [("EVAL", scripts.RENEW.text, *call) for call in calls], ends)
        except BaseException:
            connection.disconnect()
            raise
        else:
            return answers
        finally:
            pool.release(connection)

    def _renewed(self, grant: Grant, ttl: float, answer: Any) -> Renewal:
        if isinstance(answer, RedisError):
            return self._error(answer, grant.wanted)
        if answer:
            return Renewed(ttl)
        shown = grant.wanted.shown
        return LockLost(
            f"the lock of {shown} is lost: {self._config.shown} does not have it any more, as it has expired or was "
            "deleted. What you do next is not protected.",
            asset=shown,
        )

    def _error(self, error: Exception, wanted: Wanted) -> LockError:
        shown = wanted.shown
        if isinstance(error, _REFUSED):
            return LockDenied(f"{self._config.shown} does not let you in: {error}", asset=shown)
        if isinstance(error, _DOWN):
            what = f"{shown} can't be locked or renewed now"
            said = f"{self._config.shown} does not answer, so {what}: {error}. Try again."
            return BackendUnavailable(said, asset=shown, retry_after=1.0)
        return LockError(f"{self._config.shown} refused to handle the lock of {shown}: {error}", asset=shown)

    def _compare(self, wanted: Wanted, most: int, limits: Sequence[int]) -> None:
        for name, limit in zip(wanted.names, limits, strict=True):
            if limit < most and (name, most, limit) not in self._warned:
                self._warned.add((name, most, limit))
                log.warning(
                    "max_locks of %s is %d here and %d elsewhere: %d counts", name, most, limit, limit
                )


def _answers(connection: Any, commands: Sequence[tuple[Any, ...]], ends: float) -> list[Any]:
    """Send commands in one go, and read what comes of each until a moment of the monotonic clock."""
    connection.send_packed_command(connection.pack_commands(commands))
    answers: list[Any] = []
    for _ in commands:
        if not connection.can_read(timeout=max(ends - time.monotonic(), 0.001)):
            raise RedisTimeoutError("no answer in time")
        try:
            answers.append(connection.read_response())
        except _DOWN:
            raise
        except RedisError as error:
            answers.append(error)
    return answers


def _renewal(grant: Grant, milliseconds: int) -> list[Any]:
    """The arguments of the script, but for the keys."""
    arguments: list[Any] = [grant.wanted.id, milliseconds, _memory(milliseconds / 1000)]
    for slot in _slots(grant):
        arguments += [slot, grant.wanted.max_locks or 1]
    return arguments


def _memory(ttl: float) -> int:
    return _milliseconds(max(2 * ttl, REMEMBERED))


def _refusal(left: int, holders: Sequence[bytes]) -> Refusal:
    seconds = left / 1000 if left >= 0 else None
    until = None
    if seconds is not None:
        until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
    return Refusal(tuple(str(who, "utf-8", "replace") for who in holders[:10]), seconds, until)


def _slots(grant: Grant) -> tuple[int, ...]:
    slots = grant.state
    assert isinstance(slots, tuple)
    return slots


def _milliseconds(seconds: float) -> int:
    return max(1, math.floor(seconds * 1000))
