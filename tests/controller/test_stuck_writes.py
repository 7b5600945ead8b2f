"""What fails is tried again with growing pauses, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from assetlock.controller.keys import AssetKey
from assetlock.controller.reconcile.stuck_writes import LONGEST_PAUSE, MOST_UNANSWERED, StuckWrites
from assetlock.core.stuck import Subject
from assetlock.kube.errors import Forbidden, ServerError, TooManyRequests
from tests.sim import virtual

KEY, OTHER = AssetKey("shop", "web"), AssetKey("shop", "db")
LEASE = Subject("Lease", "shop", "asset.web")


def in_virtual_time(story: Callable[[StuckWrites], object]) -> None:
    async def main() -> None:
        story(StuckWrites(virtual.Clock(asyncio.get_running_loop())))

    virtual.run(main)


def test_the_pauses_grow_across_different_failures_until_the_write_is_made() -> None:
    def story(stuck: StuckWrites) -> None:
        pauses = []
        for error in (ServerError(500), Forbidden(403), ServerError(503), *[Forbidden(403)] * 7):
            stuck.failed(KEY, LEASE, error)
            pauses.append(stuck.recheck_at(KEY) or 0.0)
        assert pauses == sorted(pauses)
        assert pauses[0] < 0.2
        assert pauses[-1] == LONGEST_PAUSE
        stuck.made(LEASE)
        stuck.failed(KEY, LEASE, ServerError(500))
        assert (stuck.recheck_at(KEY) or 0.0) == pauses[0]

    in_virtual_time(story)


def test_what_may_pass_is_not_told_of_before_it_has_failed_a_few_times() -> None:
    def story(stuck: StuckWrites) -> None:
        told = []
        for _ in range(4):
            stuck.failed(KEY, LEASE, ServerError(500))
            told.append(stuck.of(KEY)[LEASE].failed)
        assert told == [False, False, True, True]
        stuck.made(LEASE)
        stuck.failed(KEY, LEASE, Forbidden(403))
        assert stuck.of(KEY)[LEASE].failed, "a refusal does not pass by itself"

    in_virtual_time(story)


def test_the_time_that_the_server_asks_for_is_given() -> None:
    def story(stuck: StuckWrites) -> None:
        stuck.failed(KEY, LEASE, TooManyRequests(429, retry_after=5.0))
        assert stuck.recheck_at(KEY) == 5.0

    in_virtual_time(story)


def test_only_so_many_writes_of_a_kind_in_a_namespace_are_without_an_answer() -> None:
    def story(stuck: StuckWrites) -> None:
        subjects = [Subject("v1 ConfigMap", "shop", f"page-{number}") for number in range(MOST_UNANSWERED)]
        for subject in subjects:
            assert not stuck.hang(subject)
            stuck.unanswered(KEY, subject, "no answer")
        assert stuck.hang(Subject("v1 ConfigMap", "shop", "another"))
        assert not stuck.hang(Subject("v1 Secret", "shop", "another"))
        assert not stuck.hang(Subject("v1 ConfigMap", "elsewhere", "another"))
        stuck.answered(subjects[0])
        assert not stuck.hang(Subject("v1 ConfigMap", "shop", "another"))

    in_virtual_time(story)


def test_a_lease_that_is_stuck_concerns_its_asset_whoever_tried_to_write_it() -> None:
    def story(stuck: StuckWrites) -> None:
        stuck.failed(OTHER, LEASE, Forbidden(403))
        assert stuck.recheck_at(KEY) is not None
        assert LEASE in stuck.of(KEY)

    in_virtual_time(story)
