"""Locks are renewed while they are held, by one thread, whatever the program does; and what is lost is known."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from assetlock import AsyncLock, BackendUnavailable, Held, LockLost, lock
from assetlock.client import clock
from assetlock.client.backends.redis import RedisBackend, RedisConfig
from tests.client import servers
from tests.client.servers import Server


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A Redis that the test may stop."""
    with servers.redis_server() as server:
        yield server


@pytest.fixture
def own(own_server: Server) -> RedisBackend:
    return RedisBackend(RedisConfig(port=own_server.port), scope="own")


@contextlib.contextmanager
def silent(server: Server) -> Iterator[None]:
    """The server accepts connections and answers nothing."""
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.process.send_signal(signal.SIGCONT)


def outlive(held: Held, spans: float) -> None:
    """Compute, and never wait, for so many times the lock's first term."""
    ends = clock.now() + spans
    while clock.now() < ends:
        sum(range(1000))
    held.check()


def test_a_body_that_computes_for_twice_the_ttl_keeps_its_lock(backend: RedisBackend) -> None:
    with lock("vm-1", ttl=1, backend=backend) as held:
        outlive(held, 2)
        assert held.is_current()


async def test_a_coroutine_that_blocks_the_loop_for_twice_the_ttl_keeps_its_lock(
    backend: RedisBackend,
) -> None:
    async with AsyncLock("vm-1", ttl=1, backend=backend) as held:
        time.sleep(2)  # noqa: ASYNC251
        held.check()
        assert await held.is_current()


def test_a_thousand_locks_are_renewed_by_one_thread(backend: RedisBackend) -> None:
    before = {thread.ident for thread in threading.enumerate()}
    held = [lock(f"vm-{number}", ttl=6, backend=backend).acquire() for number in range(1000)]
    first = {each.id: each._term.deadline for each in held}
    deadline = time.monotonic() + 60
    while any(each._term.deadline == first[each.id] for each in held):
        assert time.monotonic() < deadline, "not all were renewed"
        time.sleep(0.1)
    more = [thread for thread in threading.enumerate() if thread.ident not in before]
    assert [thread.name for thread in more] in ([], ["assetlock-renewer"])
    for each in held:
        each.check()
        each.release()


def test_an_outage_shorter_than_the_deadline_costs_nothing(own: RedisBackend, own_server: Server) -> None:
    with lock("vm-1", ttl=6, backend=own) as held:
        first = held._term.deadline
        with silent(own_server):
            assert not held.lost.wait(2.5), held._term.loss
        deadline = time.monotonic() + 30
        while held._term.deadline == first:
            assert time.monotonic() < deadline, "not renewed"
            time.sleep(0.05)
        held.check()


def test_an_outage_beyond_the_deadline_loses_the_lock_and_says_why(
    own: RedisBackend, own_server: Server
) -> None:
    told: list[LockLost] = []
    called = threading.Event()

    def on_lost(loss: LockLost) -> None:
        told.append(loss)
        called.set()

    with pytest.raises(LockLost, match="could not be renewed in time") as caught:  # noqa: SIM117
        with lock("vm-1", ttl=1, on_lost=on_lost, backend=own) as held, silent(own_server):
            assert held.lost.wait(30)
            with pytest.raises(LockLost):
                held.check()
    assert called.wait(30)
    assert "does not answer" in str(caught.value)
    assert told == [caught.value]


async def test_a_lost_lock_cancels_the_body(backend: RedisBackend, redis_server: Server) -> None:
    task = asyncio.current_task()
    assert task is not None
    with pytest.raises(LockLost):
        async with AsyncLock("vm-1", ttl=1, backend=backend):
            redis_server.client().flushall()
            await asyncio.sleep(60)
    assert task.cancelling() == 0


async def test_a_body_may_outlive_the_loss_if_it_says_so(backend: RedisBackend, redis_server: Server) -> None:
    done = False
    with pytest.raises(LockLost):
        async with AsyncLock("vm-1", ttl=1, on_lost="raise_at_exit", backend=backend) as held:
            redis_server.client().flushall()
            await asyncio.to_thread(held.lost.wait, 30)
            done = True
    assert done


async def test_the_bodys_own_error_wins_over_the_loss(backend: RedisBackend, redis_server: Server) -> None:
    with pytest.raises(KeyError) as caught:
        async with AsyncLock("vm-1", ttl=1, on_lost="raise_at_exit", backend=backend) as held:
            redis_server.client().flushall()
            await asyncio.to_thread(held.lost.wait, 30)
            raise KeyError("mine")
    assert isinstance(caught.value.__context__, LockLost)
    assert any("is lost" in note for note in caught.value.__notes__)


async def test_a_cancellation_from_outside_stays_one(backend: RedisBackend) -> None:
    entered = asyncio.Event()

    async def body() -> None:
        async with AsyncLock("vm-1", backend=backend):
            entered.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(body())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await AsyncLock("vm-1", backend=backend).holders() == {"vm-1": []}


def test_the_clocks_of_the_machine_do_not_matter(
    backend: RedisBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lock("vm-1", ttl=1, backend=backend) as held:
        real = time.time
        for hours in (-1, 1):
            monkeypatch.setattr(time, "time", lambda hours=hours: real() + hours * 3600)
            assert not held.lost.wait(1)
            held.check()
        assert held.is_current()


def test_what_could_not_be_released_is_released_when_redis_is_back(
    own: RedisBackend, own_server: Server
) -> None:
    held = lock("vm-1", ttl=600, backend=own).acquire()
    with silent(own_server):
        held.release()
    lock("vm-1", wait=30, backend=own).acquire().release()


def test_a_backend_that_stays_down_does_not_hold_up_what_is_released_elsewhere(
    own: RedisBackend, own_server: Server
) -> None:
    nobody = RedisBackend(RedisConfig(port=1))
    with pytest.raises(BackendUnavailable):
        lock("vm-1", backend=nobody).acquire()
    held = lock("vm-1", ttl=600, backend=own).acquire()
    with silent(own_server):
        held.release()
    lock("vm-1", wait=30, backend=own).acquire().release()
