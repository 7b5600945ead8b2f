"""Who leads, in virtual time, before a server that keeps versions."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from assetlock.controller.leadership import LEADER_LEASE, Elector, LeadershipLost, present_leader
from assetlock.core import names
from assetlock.kube.api import Api
from assetlock.kube.resources import LEASES
from tests.sim import virtual
from tests.sim.client import Client
from tests.sim.faults import Faults, Trouble
from tests.sim.server import Server

NEVER = {str(Trouble.LOST_REQUEST): 1.0}


class Place:
    """A server and candidates, each with a clock and a network of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.server = Server(virtual.Clock(self.loop))
        self.faults: dict[str, Faults] = {}

    def candidate(self, name: str, *, skew: float = 0.0, lost: range = range(0)) -> Elector:
        """`lost`: of these requests, by number, the answer is lost."""
        spared = set(range(1, 100)) - set(lost) if lost else set()
        rates = {str(Trouble.ERROR_AFTER): 1.0} if lost else {}
        faults = self.faults[name] = Faults(name, rates, muted=spared)
        api = Api(Client(self.server, faults=faults), random=lambda: 0.5)
        return Elector(api, virtual.Clock(self.loop, skew=skew), name)

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
        assert first.leading.is_set()
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
        with pytest.raises(LeadershipLost):
            await keeping
        assert not first.leading.is_set()
        assert not active.done()
        await active
        assert await place.holder() == "second"

    in_virtual_time(story)


def test_a_leader_that_slept_past_its_lease_knows_that_it_may_not_lead() -> None:
    async def story(place: Place) -> None:
        first = place.candidate("first")
        await first.acquire()
        first._sleep = lambda _seconds: asyncio.sleep(3.2)
        with pytest.raises(LeadershipLost):
            await first.keep()

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
        assert not first.leading.is_set()
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
