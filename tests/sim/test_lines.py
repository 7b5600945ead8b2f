"""The real controller with a line that is longer than a decision looks at, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from assetlock.controller.reconcile import line
from tests.sim.story import tell
from tests.sim.test_controller import CALM, Telling
from tests.sim.world import World

LONG = 60


async def in_line(told: Telling, length: int, *, wait: str = "1h") -> list[str]:
    """A line of waiters behind a holder, in the order of their places."""
    await told.ask("holder", ttl="4h")
    await told.until("holder", "Held", 1)
    names = [f"w-{number}" for number in range(length)]
    for number, name in enumerate(names):
        await told.ask(name, ttl="1h", wait=wait, priority=length - number)
    return names


def places(told: Telling, names: list[str]) -> dict[str, int | None]:
    locks = {name: told.board.get("assetlocks", name) for name in names}
    return {name: lock.get("status", {}).get("queuePosition") for name, lock in locks.items() if lock}


def told_by(story: Callable[[Telling], Awaitable[None]]) -> None:
    async def play(world: World) -> None:
        told = Telling(world)
        await told.begin()
        await story(told)

    tell(play, CALM, seed="line")


def test_everybody_in_a_long_line_is_shown_a_place_and_the_asset_counts_them() -> None:
    async def story(told: Telling) -> None:
        names = await in_line(told, LONG)
        await asyncio.sleep(3)
        assert places(told, names) == {name: number for number, name in enumerate(names, start=1)}
        asset = told.board.get("assets", "vm")
        assert asset is not None and asset["status"]["queueLength"] == LONG

    told_by(story)


def test_a_place_far_back_is_right_by_half_again_within_seconds() -> None:
    async def story(told: Telling) -> None:
        names = await in_line(told, LONG)
        await asyncio.sleep(3)
        for name in names[:35]:
            await told.withdraw(name)
        await asyncio.sleep(2 * line.PASS_EVERY)
        shown = places(told, names)
        assert all((shown[name] or 0) < 2 * place for place, name in enumerate(names[35:], start=1))

    told_by(story)


def test_a_line_is_handed_on_at_once_although_nobody_is_shown_a_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(line, "WRITES_PER_SECOND", 0.0)

    async def story(told: Telling) -> None:
        names = await in_line(told, LONG)
        await asyncio.sleep(3)
        assert places(told, names)[names[-1]] is None
        for present, following in zip(["holder", *names], names, strict=False):
            await told.withdraw(present)
            assert await told.until(following, "Held", 1) < 1

    told_by(story)


def test_who_waits_far_back_gives_up_in_time() -> None:
    async def story(told: Telling) -> None:
        names = await in_line(told, LONG, wait="1h")
        await told.ask("hasty", wait="700ms", priority=-1)
        took = await told.until("hasty", "Failed", 3)
        assert 0.5 < took < 2.7, (
            "its wait, a second as creation times have no parts of one, and one to be looked at"
        )
        assert told.state(names[-1]) == "Pending"

    told_by(story)
