"""Who leads, in virtual time, before a server that keeps versions."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest

from assetlock.controller.leader_process import LeaderProcess
from assetlock.controller.leadership import LEADER_LEASE, Elector, Timing, present_leader
from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.resources import LEASES
from tests.sim import virtual
from tests.sim.client import Client
from tests.sim.faults import Faults, Trouble
from tests.sim.server import Server

TIMING = Timing(3.0, 2.0, 0.5)
NEVER = {str(Trouble.LOST_REQUEST): 1.0}


class Place:
    """A server and candidates, each with a clock and a network of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.server = Server(virtual.Clock(self.loop))
        self.faults: dict[str, Faults] = {}
        self.clients: dict[str, Client] = {}

    def candidate(
        self,
        name: str,
        *,
        skew: float = 0.0,
        lost: range = range(0),
        trouble: Trouble = Trouble.ERROR_AFTER,
        process: LeaderProcess | None = None,
        fit: Callable[[], bool] = lambda: True,
    ) -> Elector:
        """`lost`: these requests, by number, fare ill: the answer is lost, or another `trouble` befalls them."""
        spared = set(range(1, 100)) - set(lost) if lost else set()
        rates = {str(trouble): 1.0} if lost else {}
        faults = self.faults[name] = Faults(name, rates, muted=spared)
        client = self.clients[name] = Client(self.server, faults=faults)
        api = Api(client, random=lambda: 0.5)
        clock = virtual.Clock(self.loop, skew=skew)
        return Elector(api, clock, name, timing=TIMING, process=process, fit=fit)

    def cut_off(self, name: str) -> None:
        """From now on nothing of this candidate arrives any more."""
        self.faults[name].rates.update(NEVER)

    async def seen(self) -> str | None:
        """Who leads, as somebody sees it who looks on for a while."""
        return await present_leader(Api(Client(self.server)), virtual.Clock(self.loop))

    async def holder(self) -> str:
        record = await Api(Client(self.server)).get(LEASES, names.OPERATOR_NAMESPACE, LEADER_LEASE)
        return str(record["spec"]["holderIdentity"])


def in_virtual_time(story: Callable[[Place], Awaitable[None]]) -> None:
    async def main() -> None:
        await story(Place())

    virtual.run(main, limit=3600)


async def seconds(work: Awaitable[None]) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await work
    return loop.time() - began


def test_the_first_to_stand_leads_at_once() -> None:
    async def story(place: Place) -> None:
        first = place.candidate("first")
        assert await seconds(first.acquire()) < 0.1
        assert first.leads
        assert await place.holder() == "first"

    in_virtual_time(story)


def test_nobody_takes_over_while_the_leader_renews() -> None:
    async def story(place: Place) -> None:
        first, second = place.candidate("first"), place.candidate("second")
        await first.acquire()
        keeping = asyncio.create_task(first.keep())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(second.acquire(), 600)
        assert not keeping.done()
        keeping.cancel()

    in_virtual_time(story)


@pytest.mark.parametrize("skew", [0.0, 7200.0, -7200.0])
def test_a_dead_leader_is_succeeded_when_its_record_was_seen_unchanged_for_its_whole_duration(
    skew: float,
) -> None:
    async def story(place: Place) -> None:
        await place.candidate("first").acquire()
        await asyncio.sleep(100)
        waited = await seconds(place.candidate("second", skew=skew).acquire())
        assert 3.0 < waited < 3.0 + 0.5 + 0.1

    in_virtual_time(story)


def test_a_leader_that_can_not_renew_stops_before_another_may_begin() -> None:
    async def story(place: Place) -> None:
        first, second = place.candidate("first"), place.candidate("second")
        await first.acquire()
        keeping, active = asyncio.create_task(first.keep()), asyncio.create_task(second.acquire())
        await asyncio.sleep(10)
        place.cut_off("first")
        await keeping
        assert not first.leads
        assert not active.done()
        await active
        assert await place.holder() == "second"

    in_virtual_time(story)


def test_a_leader_that_slept_past_its_lease_knows_that_it_may_not_lead() -> None:
    async def story(place: Place) -> None:
        first = place.candidate("first")
        await first.acquire()
        first._sleep = lambda _seconds: asyncio.sleep(3.2)
        await first.keep()
        assert not first.leads

    in_virtual_time(story)


def test_a_leader_outlives_an_outage_shorter_than_its_deadline() -> None:
    async def story(place: Place) -> None:
        first = place.candidate("first")
        await first.acquire()
        keeping = asyncio.create_task(first.keep())
        await asyncio.sleep(10)
        place.faults["first"].rates[str(Trouble.UNREACHABLE)] = 1.0
        await asyncio.sleep(1.2)
        place.faults["first"].quiet()
        await asyncio.sleep(60)
        assert not keeping.done()
        keeping.cancel()

    in_virtual_time(story)


def test_one_that_lets_go_is_succeeded_at_once() -> None:
    async def story(place: Place) -> None:
        first, second = place.candidate("first"), place.candidate("second")
        await first.acquire()
        await first.release()
        assert not first.leads
        assert await seconds(second.acquire()) < 0.1

    in_virtual_time(story)


def test_one_that_never_led_takes_nothing_away_by_letting_go() -> None:
    async def story(place: Place) -> None:
        first, second = place.candidate("first"), place.candidate("second")
        await first.acquire()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(second.acquire(), 1)
        await second.release()
        assert await place.holder() == "first"

    in_virtual_time(story)


def test_of_two_that_stand_in_the_same_moment_one_leads() -> None:
    async def story(place: Place) -> None:
        both = [place.candidate("first"), place.candidate("second")]
        active = [asyncio.create_task(elector.acquire()) for elector in both]
        await asyncio.sleep(1)
        assert sum(task.done() for task in active) == 1
        for task in active:
            task.cancel()

    in_virtual_time(story)


def test_a_claim_whose_answer_was_lost_is_recognised_as_our_own() -> None:
    async def story(place: Place) -> None:
        first = place.candidate("first", lost=range(2, 3))
        assert 0.5 < await seconds(first.acquire()) < 0.6
        assert await place.holder() == "first"

    in_virtual_time(story)


def test_who_looks_on_sees_a_leader_that_renews() -> None:
    async def story(place: Place) -> None:
        first = place.candidate("first")
        await first.acquire()
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(first.keep())
            assert await place.seen() == "first"
            keeping.cancel()

    in_virtual_time(story)


def test_who_looks_on_sees_nobody_where_a_leader_died_released_or_never_was() -> None:
    async def story(place: Place) -> None:
        assert await place.seen() is None
        first = place.candidate("first", skew=3600.0)
        await first.acquire()
        began = place.loop.time()
        assert await place.seen() is None, "it has died, whatever its clock said"
        assert 3 < place.loop.time() - began < 5, "a term of it was waited for"
        await first.release()
        assert await place.seen() is None

    in_virtual_time(story)


def test_a_leader_that_lost_the_lease_leads_again_as_soon_as_it_can() -> None:
    async def story(place: Place) -> None:
        first = place.candidate("first")
        standing = asyncio.create_task(first.run())
        await asyncio.sleep(10)
        assert first.leads
        place.cut_off("first")
        await asyncio.sleep(10)
        assert not first.leads
        place.faults["first"].quiet()
        await asyncio.sleep(3)
        assert first.leads
        assert not standing.done(), "losing the Lease ends nothing"
        standing.cancel()

    in_virtual_time(story)


@pytest.mark.parametrize("trouble", [Trouble.LOST_REQUEST, Trouble.ERROR_AFTER, Trouble.ERROR])
def test_one_renewal_without_an_answer_costs_no_leadership(trouble: Trouble) -> None:
    async def story(place: Place) -> None:
        changes: list[bool] = []
        first = place.candidate("first", lost=range(5, 6), trouble=trouble)
        first._changed = changes.append
        standing = asyncio.create_task(first.run())
        await asyncio.sleep(20)
        assert [drawn.number for drawn in place.faults["first"].drawn] == [5]
        assert changes == [True]
        standing.cancel()

    in_virtual_time(story)


def test_answers_that_come_late_but_within_the_deadline_cost_no_leadership() -> None:
    async def story(place: Place) -> None:
        changes: list[bool] = []
        first = place.candidate("first")
        first._changed = changes.append
        standing = asyncio.create_task(first.run())
        await asyncio.sleep(10)
        place.faults["first"].latency = lambda: 0.4  # type: ignore[method-assign]
        await asyncio.sleep(60)
        assert changes == [True]
        standing.cancel()

    in_virtual_time(story)


def test_a_renewal_is_one_request() -> None:
    async def story(place: Place) -> None:
        standing = asyncio.create_task(place.candidate("first").run())
        await asyncio.sleep(10)
        before = place.clients["first"].requests
        await asyncio.sleep(100 * TIMING.retry)
        assert place.clients["first"].requests - before <= 100
        standing.cancel()

    in_virtual_time(story)


def test_one_whose_work_does_not_get_on_releases_the_lease_and_stands_again_when_it_does() -> None:
    async def story(place: Place) -> None:
        fit = True
        first, second = place.candidate("first", fit=lambda: fit), place.candidate("second")
        first_stands = asyncio.create_task(first.run())
        await asyncio.sleep(10)
        second_stands = asyncio.create_task(second.run())
        fit = False
        await asyncio.sleep(2 * TIMING.retry + 0.1)
        assert (first.leads, second.leads) == (False, True)
        second_stands.cancel()
        await asyncio.gather(second_stands, return_exceptions=True)
        await second.release()
        await asyncio.sleep(5)
        assert not first.leads
        fit = True
        await asyncio.sleep(2 * TIMING.retry)
        assert first.leads
        first_stands.cancel()

    in_virtual_time(story)


def test_a_leader_whose_process_has_ended_is_succeeded_at_once_by_one_on_the_same_machine() -> None:
    mine = LeaderProcess.of(os.getpid())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        other = LeaderProcess.of(child.pid)

        async def story(place: Place) -> None:
            await place.candidate("first", process=other).acquire()
            second = place.candidate("second", process=mine)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(second.acquire(), 1)
            child.kill()
            child.wait()
            assert await seconds(second.acquire()) < 0.1

        in_virtual_time(story)


def test_nobody_takes_a_process_for_gone_that_he_can_not_look_for() -> None:
    mine = LeaderProcess.of(os.getpid(), "pod-1")
    assert mine is not None
    gone = {"boot": mine.boot, "namespace": mine.namespace, "pid": 2**22 + 1, "began": "1", "pod_uid": "-"}
    assert mine.knows_gone(str(LeaderProcess(**gone)))
    assert not mine.knows_gone(str(LeaderProcess(**gone | {"boot": "elsewhere"})))
    assert not mine.knows_gone(str(LeaderProcess(**gone | {"namespace": "pid:[2]"})))
    assert not mine.knows_gone(str(mine))
    assert not mine.knows_gone("")
    restarted = LeaderProcess("elsewhere", "pid:[1]", 1, "1", "pod-1")
    assert mine.knows_gone(str(restarted)), "a container starts again when the former one has ended"


@pytest.mark.parametrize(
    ("times", "told"),
    [
        ((15.0, 15.0, 2.0), "don't fit"),
        ((15.0, 10.0, 9.0), "don't fit"),
        ((15.0, 10.0, 0.0), "don't fit"),
        ((2.5, 2.0, 0.5), "whole seconds"),
        ((0.0, 0.0, 0.0), "whole seconds"),
    ],
)
def test_times_that_do_not_fit_together_are_refused(times: tuple[float, float, float], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Timing(*times)
