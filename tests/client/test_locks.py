"""Locks in a real Redis: what a program sees of them."""

from __future__ import annotations

import asyncio
import contextvars
import pickle
import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

from assetlock import (
    AlreadyHeld,
    AsyncLock,
    BackendUnavailable,
    Lock,
    LockError,
    LockLost,
    LockTimeout,
    current_lock,
    lock,
)
from assetlock.client.backends.redis import RedisBackend, RedisConfig
from tests.client.servers import Server

T = TypeVar("T")


def elsewhere(call: Callable[[], T]) -> T:
    """Call it as somebody who holds nothing."""
    return contextvars.Context().run(call)


def test_a_block_holds_its_lock_and_gives_it_back(backend: RedisBackend) -> None:
    with lock("vm-1", backend=backend) as held:
        held.check()
        assert held.is_current()
        assert len(lock("vm-1", backend=backend).holders()["vm-1"]) == 1
    assert lock("vm-1", backend=backend).holders() == {"vm-1": []}
    with pytest.raises(LockLost, match="was released"):
        held.check()


def test_nobody_enters_a_block_whose_lock_others_hold(backend: RedisBackend) -> None:
    def enter() -> None:
        with lock("vm-1", wait=0, backend=backend):
            pytest.fail("entered")

    with lock("vm-1", ttl=60, backend=backend), pytest.raises(LockTimeout) as caught:
        elsewhere(enter)
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.asset == "vm-1"
    assert len(caught.value.holders) == 1
    assert caught.value.until is not None
    assert caught.value.retry_after is not None
    assert caught.value.retryable


@pytest.mark.parametrize("wait", [0, 0.3])
async def test_a_coroutine_waits_no_longer_than_it_wants(backend: RedisBackend, wait: float) -> None:
    held = await AsyncLock("vm-1", backend=backend).acquire()
    with pytest.raises(LockTimeout, match="vm-1 is held by"):
        await AsyncLock("vm-1", backend=backend).acquire(wait=wait)
    await held.release()


def test_trying_gives_a_handle_or_nothing(backend: RedisBackend) -> None:
    first = Lock("vm-1", backend=backend).try_acquire()
    assert first is not None
    assert Lock("vm-1", backend=backend).try_acquire() is None
    first.release()
    first.release()  # nothing more happens
    second = Lock("vm-1", backend=backend).try_acquire()
    assert second is not None
    assert second.token > first.token
    second.release()


def test_a_waiter_gets_the_lock_when_it_is_released(backend: RedisBackend) -> None:
    first = lock("vm-1", backend=backend).acquire()
    got: list[int] = []
    waits = threading.Event()

    def wait() -> None:
        waits.set()
        with lock("vm-1", wait=30, backend=backend) as held:
            got.append(held.token)

    waiter = threading.Thread(target=wait)
    waiter.start()
    waits.wait()
    first.release()
    waiter.join(30)
    assert got[0] > first.token


def test_a_waiter_gets_a_lock_that_expires(backend: RedisBackend, redis_server: Server) -> None:
    first = lock("vm-1", ttl=60, backend=backend).acquire()
    redis_server.client().pexpire(f"assetlock:{{{backend._scope}:vm-1}}:0", 200)
    lock("vm-1", wait=30, backend=backend).acquire().release()
    with pytest.raises(LockLost):
        first.release()


def test_no_more_hold_a_name_than_max_locks(backend: RedisBackend) -> None:
    inside, most, mutex = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal inside, most
        with lock("pool", max_locks=3, wait=60, backend=backend) as held:
            with mutex:
                inside += 1
                most = max(most, inside)
            held.is_current()
            with mutex:
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most <= 3
    assert lock("pool", backend=backend).holders() == {"pool": []}


@pytest.mark.parametrize(("first", "second"), [(5, 2), (2, 5)])
def test_of_disagreeing_max_locks_the_smaller_counts_and_it_is_said(
    backend: RedisBackend, first: int, second: int, caplog: pytest.LogCaptureFixture
) -> None:
    held = [lock("pool", max_locks=first, backend=backend).acquire() for _ in range(2)]
    assert lock("pool", max_locks=second, backend=backend).try_acquire() is None
    held.pop().release()
    another = lock("pool", max_locks=second, backend=backend).try_acquire()
    assert another is not None
    assert lock("pool", max_locks=5, backend=backend).try_acquire() is None
    assert "2 counts" in caplog.text
    for each in (*held, another):
        each.release()


def test_several_names_are_taken_together_or_not_at_all(backend: RedisBackend) -> None:
    with lock("b", backend=backend):
        assert elsewhere(lambda: lock("a", "b", wait=0, backend=backend).try_acquire()) is None
        assert lock("a", backend=backend).holders() == {"a": []}
    with lock("b", "a", backend=backend) as held:
        assert set(held.tokens) == {"a", "b"}
        with pytest.raises(ValueError, match="use tokens"):
            _ = held.token


def test_entering_what_one_holds_is_refused_at_once(backend: RedisBackend) -> None:
    with lock("vm-1", backend=backend), pytest.raises(AlreadyHeld, match="wait for itself"):
        lock("vm-1", backend=backend).acquire()


async def test_a_child_task_that_enters_what_its_parent_holds_is_refused(backend: RedisBackend) -> None:
    async with AsyncLock("vm-1", backend=backend):
        with pytest.raises(AlreadyHeld):
            await asyncio.create_task(AsyncLock("vm-1", backend=backend).acquire())


def test_a_reentrant_lock_is_released_by_the_outermost_block(backend: RedisBackend) -> None:
    with lock("vm-1", reentrant=True, backend=backend) as outer:
        with lock("vm-1", reentrant=True, backend=backend) as inner:
            assert inner is outer
        outer.check()
    assert not outer.is_current()


def test_the_current_lock_is_known_in_threads_and_child_tasks(backend: RedisBackend) -> None:
    async def main() -> None:
        async with AsyncLock("vm-1", backend=backend) as held:
            assert current_lock() is held
            assert await asyncio.to_thread(current_lock) is held

            async def child() -> object:
                return current_lock()

            assert await asyncio.create_task(child()) is held
        assert current_lock() is None

    asyncio.run(main())


def test_a_handle_may_be_released_by_another_thread(backend: RedisBackend) -> None:
    held = lock("vm-1", backend=backend).acquire()
    thread = threading.Thread(target=held.release)
    thread.start()
    thread.join()
    assert lock("vm-1", backend=backend).try_acquire() is not None


def test_a_handle_that_is_dropped_frees_its_lock(backend: RedisBackend) -> None:
    lock("vm-1", backend=backend).acquire()
    lock("vm-1", wait=30, backend=backend).acquire().release()


def test_a_lock_object_is_shared_by_threads(backend: RedisBackend) -> None:
    shared = lock("pool", max_locks=4, backend=backend)
    meeting = threading.Barrier(4)
    tokens: list[int] = []

    def enter() -> None:
        with shared as held:
            meeting.wait(30)
            tokens.append(held.token)

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(set(tokens)) == 4


def test_extending_changes_how_long_it_lasts(backend: RedisBackend) -> None:
    with lock("vm-1", ttl=30, backend=backend) as held:
        before = held.until
        held.extend("1h")
        assert (held.until - before).total_seconds() > 3000


def test_names_never_share_a_key(backend: RedisBackend) -> None:
    names = ("a", "a:0", "a}:0", "{a", "a b", "ä", "a%3A0")
    held = [lock(name, wait=0, backend=backend).acquire() for name in names]
    assert len({each.id for each in held}) == len(names)
    for each in held:
        each.release()


@pytest.mark.parametrize("bad", ["", "a\n", "x" * 254])
def test_what_is_no_name_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        lock(bad)


@pytest.mark.parametrize("ttl", [0, -1, float("inf"), float("nan"), "soon"])
def test_a_ttl_is_finite(ttl: float | str) -> None:
    with pytest.raises(ValueError):
        lock("vm-1", ttl=ttl)


def test_programs_with_other_names_do_not_meet(redis_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    config = RedisConfig(port=redis_server.port)
    scopes = [("billing", ""), ("billing", "staging"), ("shop", "")]
    held = []
    for application, environment in scopes:
        monkeypatch.setenv("APPLICATION_NAME", application)
        monkeypatch.setenv("APPLICATION_ENVIRONMENT", environment)
        held.append(lock("vm-1", wait=0, backend=RedisBackend(config)).acquire())
    for each in held:
        each.release()


def test_scripts_that_redis_has_forgotten_are_sent_again(backend: RedisBackend, redis_server: Server) -> None:
    with lock("vm-1", backend=backend) as held:
        redis_server.client().script_flush()
        held.extend(60)
        redis_server.client().script_flush()
    assert lock("vm-1", backend=backend).holders() == {"vm-1": []}


def test_a_lock_that_somebody_deleted_is_lost(backend: RedisBackend, redis_server: Server) -> None:
    with pytest.raises(LockLost, match="no longer held"), lock("vm-1", backend=backend):
        redis_server.client().flushall()


def test_tokens_grow_though_redis_has_lost_everything(backend: RedisBackend, redis_server: Server) -> None:
    with lock("vm-1", backend=backend) as held:
        first = held.token
    redis_server.client().flushall()
    with lock("vm-1", backend=backend) as held:
        assert held.token > first


def test_a_late_call_of_an_acquisition_that_was_given_up_gets_nothing(backend: RedisBackend) -> None:
    pursuit = Lock("vm-1", backend=backend)._pursuit(0)
    assert not isinstance(pursuit, LockError)
    backend.abandon(pursuit.wanted)  # type: ignore[union-attr]
    with pytest.raises(LockError, match="given up"):
        backend.attempt(pursuit.wanted, 0)  # type: ignore[union-attr]
    assert lock("vm-1", backend=backend).holders() == {"vm-1": []}


def test_redis_that_is_down_is_an_error_to_be_retried() -> None:
    nobody = RedisBackend(RedisConfig(port=1))
    with pytest.raises(BackendUnavailable, match="Redis at localhost:1 does not answer") as caught:
        lock("vm-1", backend=nobody).acquire()
    assert isinstance(caught.value, ConnectionError)
    assert caught.value.retryable


def test_errors_come_through_pickle(backend: RedisBackend) -> None:
    error = LockTimeout("held", asset="vm-1", holders=("somebody",), retry_after=2)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.asset, copy.holders, copy.retry_after) == ("held", "vm-1", ("somebody",), 2)
