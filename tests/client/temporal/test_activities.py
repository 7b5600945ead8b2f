"""`needs_lock` on activities, with a real Temporal server, workflows, and Redis."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import multiprocessing
import os
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import SharedStateManager, UnsandboxedWorkflowRunner, Worker

from assetlock import AsyncLock, needs_lock, use
from assetlock.client.backends.redis import RedisBackend, RedisConfig
from assetlock.temporal import LockInterceptor
from tests.client import servers
from tests.client.servers import Server
from tests.client.temporal import server, work
from tests.client.temporal.work import Fan, Plan


@pytest.fixture(scope="session")
def temporal() -> Iterator[str]:
    with server.serving() as address:
        yield address


@pytest.fixture
def redis_backend(redis_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisBackend]:
    """The backend of this process, and by the environment that of its children."""
    monkeypatch.setenv("REDIS_HOST", "127.0.0.1")
    monkeypatch.setenv("REDIS_PORT", str(redis_server.port))
    monkeypatch.setenv(work.PORT, str(redis_server.port))
    chosen = RedisBackend.from_environment()
    use(chosen)
    yield chosen
    use(None)


class Stage:
    """Runs workers and workflows on a task queue of its own."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.queue = self.key = f"q-{uuid.uuid4().hex[:10]}"

    def worker(self, activities: Sequence[Callable[..., Any]], **options: Any) -> Worker:
        return Worker(
            self.client,
            task_queue=self.queue,
            activities=activities,
            workflows=[Fan, work.Locking],
            workflow_runner=UnsandboxedWorkflowRunner(),
            interceptors=[LockInterceptor()],
            **options,
        )

    async def start(
        self, name: str, *, args: list[Any] | None = None, **options: Any
    ) -> WorkflowHandle[Any, Any]:
        plan = Plan(name, [self.key] if args is None else args, **options)
        return await self.client.start_workflow(
            Fan.run, plan, id=f"w-{uuid.uuid4().hex}", task_queue=self.queue
        )

    async def run(self, name: str, **options: Any) -> list[Any]:
        found: list[Any] = await (await self.start(name, **options)).result()
        return found

    async def failure(self, name: str, **options: Any) -> ApplicationError:
        """Why the activity failed for good."""
        with pytest.raises(WorkflowFailureError) as caught:
            await self.run(name, **options)
        error = caught.value.cause
        assert isinstance(error, ActivityError)
        assert isinstance(error.cause, ApplicationError)
        return error.cause

    async def waiting(self, handle: WorkflowHandle[Any, Any]) -> None:
        """Until an attempt has waited without success."""
        deadline = time.monotonic() + 60
        while True:
            pending = (await handle.describe()).raw_description.pending_activities
            if any(each.HasField("last_failure") or each.attempt > 1 for each in pending):
                return
            assert time.monotonic() < deadline, "it does not wait"
            await asyncio.sleep(0.05)

    async def attempts(self, count: int) -> None:
        """Until so many attempts have noted that they run."""
        counters, deadline = work.counters(), time.monotonic() + 60
        while counters.llen(self.key) < count:
            assert time.monotonic() < deadline, "it does not run"
            await asyncio.sleep(0.02)


@pytest.fixture
async def stage(temporal: str, redis_backend: RedisBackend) -> AsyncIterator[Stage]:
    yield Stage(await Client.connect(temporal))


@contextlib.contextmanager
def executor(kind: str) -> Iterator[dict[str, Any]]:
    if kind == "loop":
        yield {}
    elif kind == "threads":
        with concurrent.futures.ThreadPoolExecutor(50) as threads:
            yield {"activity_executor": threads}
    else:
        context = multiprocessing.get_context("spawn")
        with (
            concurrent.futures.ProcessPoolExecutor(4, mp_context=context) as processes,
            context.Manager() as manager,
        ):
            shared = SharedStateManager.create_from_multiprocessing(manager)
            yield {"activity_executor": processes, "shared_state_manager": shared}


@pytest.mark.parametrize(("kind", "times"), [("loop", 50), ("threads", 50), ("processes", 20)])
@pytest.mark.parametrize("local", [False, True])
async def test_of_many_concurrent_activities_no_more_than_max_locks_run(
    stage: Stage, kind: str, times: int, local: bool
) -> None:
    if kind == "processes" and local:
        pytest.skip("starting the processes takes most of the time, and the other case shows it")
    function = work.in_loop if kind == "loop" else work.in_pool
    with executor(kind) as options:
        async with stage.worker([function], max_concurrent_activities=50, **options):
            tokens = await stage.run(function.__name__, times=times, local=local)
    assert len(set(tokens)) == times
    assert 1 <= int(work.counters().get(f"{stage.key}:most") or 0) <= 3
    assert await AsyncLock(f"pool-{stage.key}").holders() == {f"pool-{stage.key}": []}


async def test_the_decorators_may_come_in_either_order_and_on_methods(stage: Stage) -> None:
    async with stage.worker([work.other_order, work.Fleet("fleet").patch]):
        assert await stage.run("other_order")
        assert await stage.run("patch") == [[f"fleet-{stage.key}"]]


async def test_a_missing_timeout_is_an_error_that_names_the_activity(stage: Stage) -> None:
    async with stage.worker([work.in_loop]):
        error = await stage.failure("in_loop", schedule_to_close=None, start_to_close=10)
    assert "activity in_loop has @needs_lock" in error.message
    assert "schedule_to_close_timeout is missing" in error.message
    assert error.non_retryable


async def test_the_lock_lasts_no_longer_than_the_activity_may(
    stage: Stage, redis_backend: RedisBackend, redis_server: Server
) -> None:
    lasts: list[float] = []

    @activity.defn
    @needs_lock("vm-{key}")
    async def look(key: str) -> None:
        slot = f"assetlock:{{{redis_backend._scope}:vm-{key}}}:0"
        lasts.append(redis_server.client().pttl(slot) / 1000)

    async with stage.worker([look]):
        await stage.run("look", schedule_to_close=30)
    assert 20 < lasts[0] <= 30


async def test_an_activity_that_waits_gives_its_worker_back_and_comes_again(stage: Stage) -> None:
    held = await AsyncLock(f"vm-{stage.key}").acquire()
    async with stage.worker([work.patient, work.in_loop], max_concurrent_activities=1):
        waiting = await stage.start("patient")
        await stage.waiting(waiting)
        assert len(await stage.run("in_loop")) == 1  # the only slot comes free meanwhile
        await held.release()
        [attempt] = await waiting.result()
    assert attempt > 1


async def test_each_attempt_is_an_acquisition_of_its_own(stage: Stage) -> None:
    async with stage.worker([work.failing]):
        [[first, second]] = await stage.run("failing")
    assert second > first


async def test_a_cancelled_activity_gives_its_lock_back(stage: Stage) -> None:
    async with stage.worker([work.endless_at_first]):
        handle = await stage.start("endless_at_first", heartbeat=5)
        await stage.attempts(1)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    assert await AsyncLock(f"vm-{stage.key}").holders() == {f"vm-{stage.key}": []}


async def test_a_worker_that_shuts_down_gives_its_locks_back(stage: Stage) -> None:
    async with stage.worker([work.endless_at_first]):
        await stage.start("endless_at_first", heartbeat=5)
        await stage.attempts(1)
    assert await AsyncLock(f"vm-{stage.key}").holders() == {f"vm-{stage.key}": []}


async def test_an_activity_that_lost_its_lock_is_cancelled_and_tried_again(
    stage: Stage, redis_server: Server
) -> None:
    async with stage.worker([work.endless_at_first]):
        handle = await stage.start("endless_at_first")
        await stage.attempts(1)
        redis_server.client().flushdb()
        assert await handle.result() == [2]


@contextlib.contextmanager
def process(stage: Stage, address: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.client.temporal.worker", address, stage.queue]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "polling\n"
        yield running
    finally:
        running.kill()
        running.wait()


async def test_the_lock_of_a_worker_that_was_killed_comes_free_and_the_next_attempt_gets_it(
    stage: Stage, temporal: str
) -> None:
    with process(stage, temporal) as first:
        handle = await stage.start("blocking_at_first", start_to_close=4)
        await stage.attempts(1)
        first.kill()
        first.wait()
    with process(stage, temporal):
        [attempt] = await handle.result()
    assert attempt > 1


async def test_redis_that_is_down_is_tried_again(temporal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with servers.redis_server() as own:
        monkeypatch.setenv(work.PORT, str(own.port))
        use(RedisBackend(RedisConfig(port=own.port)))
        try:
            stage = Stage(await Client.connect(temporal))
            own.kill()
            async with stage.worker([work.in_loop]):
                handle = await stage.start("in_loop")
                error = await stage.failure("in_loop", attempts=1)
                assert (error.type, error.non_retryable) == ("BackendUnavailable", False)
                own.start()
                assert len(await handle.result()) == 1
        finally:
            use(None)


async def test_a_helper_that_needs_a_lock_is_refused_in_an_activity(stage: Stage) -> None:
    async with stage.worker([work.with_helper]):
        error = await stage.failure("with_helper")
    assert "work.helper has @needs_lock and was called in the activity with_helper" in error.message
    assert error.non_retryable


async def test_a_worker_without_the_interceptor_runs_nothing_that_needs_a_lock(stage: Stage) -> None:
    worker = Worker(
        stage.client,
        task_queue=stage.queue,
        activities=[work.in_loop],
        workflows=[Fan],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    async with worker:
        error = await stage.failure("in_loop")
    assert "LockInterceptor() into the interceptors" in error.message


async def test_a_workflow_that_needs_a_lock_fails_and_says_why(stage: Stage) -> None:
    async with stage.worker([work.in_loop]):
        with pytest.raises(WorkflowFailureError) as caught:
            await stage.client.execute_workflow(
                work.Locking.run, id=f"w-{uuid.uuid4().hex}", task_queue=stage.queue
            )
    assert "was called in a workflow: only activities can be locked" in str(caught.value.cause)


def test_a_workflow_cannot_be_decorated() -> None:
    with pytest.raises(TypeError, match="only activities can be locked"):
        needs_lock("vm-1")(Fan.run)
