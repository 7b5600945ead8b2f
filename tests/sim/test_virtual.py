"""The virtual event loop: time jumps, order is asyncio's, and what can't go on says so."""

import asyncio
import time

import pytest

from tests.sim import virtual


def test_a_day_passes_in_no_time() -> None:
    async def main() -> float:
        await asyncio.sleep(86_400)
        return asyncio.get_running_loop().time()

    began = time.monotonic()
    assert virtual.run(main) == pytest.approx(86_400)
    assert time.monotonic() - began < 1


def test_sleepers_wake_in_the_order_of_their_deadlines() -> None:
    woken: list[float] = []

    async def sleeper(seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(seconds)

    async def main() -> None:
        await asyncio.gather(*(sleeper(seconds) for seconds in (3.0, 0.5, 2.0, 1.0)))

    virtual.run(main)
    assert woken == [0.5, 1.0, 2.0, 3.0]


def test_a_timer_never_fires_early_however_large_the_clock() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(2000):
            wanted = loop.time() + 1234.000_000_1
            await asyncio.sleep(1234.000_000_1)
            assert loop.time() >= wanted

    virtual.run(main)


def test_waiting_for_what_cannot_happen_is_a_deadlock_that_names_the_tasks() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(virtual.Deadlock, match="main"):
        virtual.run(main)


def test_spinning_without_time_passing_is_a_livelock() -> None:
    async def main() -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    with pytest.raises(virtual.Livelock):
        virtual.run(main)


def test_a_run_over_its_limit_is_given_up() -> None:
    async def main() -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(1)

    with pytest.raises(virtual.TooLong):
        virtual.run(main, limit=60)


def test_an_exception_nobody_awaited_fails_the_run() -> None:
    async def broken() -> None:
        raise ValueError("unseen")

    async def main() -> None:
        task = asyncio.create_task(broken())
        await asyncio.sleep(1)
        del task
        await asyncio.sleep(1)

    with pytest.raises(ValueError, match="unseen"):
        virtual.run(main)


def test_tasks_left_over_are_cancelled_and_may_clean_up() -> None:
    cleaned: list[str] = []

    async def background() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            await asyncio.sleep(0)
            cleaned.append("yes")

    async def main() -> None:
        asyncio.get_running_loop().keep = asyncio.create_task(background())  # type: ignore[attr-defined]
        await asyncio.sleep(1)

    virtual.run(main)
    assert cleaned == ["yes"]


def test_threads_are_refused() -> None:
    async def main() -> None:
        await asyncio.to_thread(time.monotonic)

    with pytest.raises(RuntimeError, match="threads"):
        virtual.run(main)


def test_a_skewed_clock_is_off_on_the_wall_only() -> None:
    async def main() -> None:
        clock = virtual.Clock(asyncio.get_running_loop(), skew=3600)
        before = clock.monotonic()
        clock.jump(-7200)
        await asyncio.sleep(10)
        assert clock.monotonic() - before == pytest.approx(10)
        assert (clock.now() - virtual.EPOCH).total_seconds() == pytest.approx(10 - 3600)

    virtual.run(main)
