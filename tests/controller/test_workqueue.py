"""The queue behind the workers, in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable

from assetlock.controller.workqueue import LONGEST_BACKOFF, WorkQueue
from tests.sim.virtual import Clock, run


def in_virtual_time(story: Callable[["WorkQueue[str]"], Awaitable[None]]) -> None:
    async def main() -> None:
        await story(WorkQueue(Clock(asyncio.get_running_loop())))

    run(main, limit=3600)


def now() -> float:
    return asyncio.get_running_loop().time()


async def is_idle(queue: "WorkQueue[str]", seconds: float) -> bool:
    """Whether nothing is handed out for so long."""
    try:
        async with asyncio.timeout(seconds):
            await queue.get()
    except TimeoutError:
        return True
    return False


def test_a_key_that_is_added_twice_is_handed_out_once() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        queue.add("a")
        queue.add("a")
        assert await queue.get() == "a"
        queue.done("a")
        assert await is_idle(queue, 100)

    in_virtual_time(story)


def test_a_key_is_never_handed_out_while_somebody_works_on_it() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        queue.add("a")
        await queue.get()
        queue.add("a")
        assert await is_idle(queue, 100)
        queue.done("a")
        assert await queue.get() == "a"

    in_virtual_time(story)


def test_keys_are_handed_out_in_the_order_in_which_they_were_added() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        for key in "cab":
            queue.add(key)
        assert [await queue.get() for _ in range(3)] == ["c", "a", "b"]

    in_virtual_time(story)


def test_one_key_at_a_time_goes_to_each_of_many_workers() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        workers = [asyncio.create_task(queue.get()) for _ in range(3)]
        await asyncio.sleep(1)
        for key in "abc":
            queue.add(key)
        assert await asyncio.gather(*workers) == ["a", "b", "c"]

    in_virtual_time(story)


def test_a_worker_that_is_cancelled_leaves_its_place_to_the_next() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        first, second = (asyncio.create_task(queue.get()) for _ in range(2))
        await asyncio.sleep(1)
        first.cancel()
        await asyncio.sleep(1)
        queue.add("a")
        assert await second == "a"

    in_virtual_time(story)


def test_a_key_comes_at_its_deadline_neither_earlier_nor_much_later() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        queue.add_at("a", 10.0)
        await queue.get()
        assert 10.0 <= now() < 10.001

    in_virtual_time(story)


def test_the_earlier_of_two_deadlines_counts_whichever_was_set_first() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        queue.add_at("a", 20.0)
        queue.add_at("a", 10.0)
        queue.add_at("b", 5.0)
        queue.add_at("b", 30.0)
        came = {}
        for _ in range(2):
            key = await queue.get()
            came[key] = round(now())
        assert came == {"b": 5, "a": 10}

    in_virtual_time(story)


def test_a_deadline_that_was_replaced_by_an_earlier_one_does_not_come_again() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        queue.add_at("a", 20.0)
        queue.add_at("a", 10.0)
        queue.done(await queue.get())
        assert await is_idle(queue, 100)

    in_virtual_time(story)


def test_a_deadline_in_the_past_is_due_at_once() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        await asyncio.sleep(50)
        queue.add_at("a", 10.0)
        await queue.get()
        assert now() == 50

    in_virtual_time(story)


def test_a_deadline_that_passes_while_the_key_is_worked_on_is_not_lost() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        queue.add("a")
        await queue.get()
        queue.add_at("a", 10.0)
        queue.add_at("b", 11.0)
        assert await queue.get() == "b"
        queue.done("a")
        assert await queue.get() == "a"

    in_virtual_time(story)


def test_failures_back_off_twice_as_long_each_time_up_to_a_limit() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        pauses = []
        for _ in range(9):
            before = now()
            queue.retry("a")
            queue.done(await queue.get())
            pauses.append(round(now() - before, 3))
        assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, LONGEST_BACKOFF, LONGEST_BACKOFF]

    in_virtual_time(story)


def test_a_success_ends_the_backing_off() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        for _ in range(5):
            queue.retry("a")
            queue.done(await queue.get())
        queue.succeeded("a")
        before = now()
        queue.retry("a")
        await queue.get()
        assert round(now() - before, 3) == 0.1

    in_virtual_time(story)


def test_a_server_that_asks_for_more_patience_is_given_it() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        queue.retry("a", 30.0)
        await queue.get()
        assert round(now()) == 30

    in_virtual_time(story)


def test_one_that_backs_off_is_still_looked_at_when_something_happens() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        queue.retry("a", 30.0)
        queue.add("a")
        await queue.get()
        assert now() == 0

    in_virtual_time(story)


def test_of_one_group_only_so_many_are_handed_out_and_groups_take_turns() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        queue = WorkQueue[str](Clock(loop), group=lambda key: key[0], most_of_a_group=2)
        for key in ("a1", "a2", "a3", "a4", "b1", "b2"):
            queue.add(key)
        assert [await queue.get() for _ in range(4)] == ["a1", "b1", "a2", "b2"]
        assert await is_idle(queue, 100), "two of a group are at work"
        queue.done("a1")
        assert await queue.get() == "a3"

    run(main, limit=3600)


def test_the_age_of_what_waits_longest_is_known() -> None:
    async def story(queue: "WorkQueue[str]") -> None:
        assert queue.oldest() == 0
        queue.add("a")
        await asyncio.sleep(3)
        queue.add("b")
        assert queue.oldest() == 3
        await queue.get()
        assert queue.oldest() == 0

    in_virtual_time(story)
