"""A few sudden deaths of the operator under load, and proof that the judge would notice what must not be."""

from __future__ import annotations

import asyncio
import datetime
import secrets
from typing import Any

import pytest

from assetlock.core import names
from tests.chaos.clients import NAMESPACE
from tests.chaos.etcd import Revision
from tests.restarts.judge import Judge, Life
from tests.restarts.play import play
from tests.restarts.run import table

KILLS = 3
NOON = 1_900_000_000


@pytest.mark.timeout(600)
def test_an_operator_that_dies_a_few_times_breaks_no_promise() -> None:
    seed = secrets.token_hex(4)
    outcome = asyncio.run(play(KILLS, seed))
    print(table(outcome))
    assert outcome.complaints == [], f"seed {seed}"
    assert len(outcome.lives) == KILLS + 1
    assert outcome.verdict.granted + outcome.verdict.by_hand > 0


class History:
    """Revisions of an asset ``vm`` with two slots, told in a few words."""

    def __init__(self) -> None:
        self.revisions: list[Revision] = []

    def put(self, kind: str, name: str, obj: dict[str, Any]) -> None:
        group = "leases" if kind == "leases" else f"{names.GROUP}/{kind}"
        key = f"/registry/{group}/{NAMESPACE}/{name}"
        self.revisions.append(Revision(len(self.revisions) + 1, key, obj))

    def lock(self, name: str, state: str, *, age: int = 60, mode: str = "Shared", **status: Any) -> None:
        meta = {"name": name, "uid": name, "creationTimestamp": _text(NOON - age)}
        spec = {"assetName": "vm", "mode": mode, "wait": "10m", "holder": {"username": name}}
        self.put("assetlocks", name, {"metadata": meta, "spec": spec, "status": {"state": state, **status}})

    def end(self, name: str, state: str, reason: str, at: int = NOON, **status: Any) -> None:
        conditions = [{"type": "Finished", "reason": reason}]
        self.lock(name, state, finishTime=_text(at), conditions=conditions, **status)

    def asset(self, *tokens: int, mark: int | None = None, mode: str = "Shared") -> None:
        holders = [{"acquisition": f"a{token}", "fencingToken": token, "mode": mode} for token in tokens]
        status = {"holders": holders, "fencingToken": mark or max(tokens, default=0)}
        self.put("assets", "vm", {"status": status})

    def lease(self, slot: int, holder: str, *, lock: bool, at: int = NOON, token: str | None = None) -> None:
        marks = {names.LOCK_ANNOTATION: holder, names.ACQUISITION_ANNOTATION: holder} if lock else {}
        marks |= {names.TOKEN_ANNOTATION: token} if token else {}
        meta = {"labels": {names.ASSET_LABEL: "vm"}, "annotations": marks}
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": 30,
            "acquireTime": _text(at),
            "renewTime": _text(at),
        }
        self.put("leases", names.lease_name("vm", slot), {"metadata": meta, "spec": spec})

    def judged(self, leading: float | None = None) -> tuple[list[str], list[float]]:
        verdict = Judge({"vm": 2}, [Life(NOON - 1000, leading)]).walk(self.revisions)
        return [text.partition(": ")[2] for text in verdict.broken], [delay for _, delay in verdict.delays]


def _text(at: int) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_two_readers_one_after_the_other_are_as_it_must_be() -> None:
    history = History()
    for number, name in enumerate(("ann", "bo"), start=1):
        history.lock(name, "Pending")
        history.lease(number - 1, name, lock=True)
        history.asset(*range(1, number + 1))
        history.lock(name, "Held", fencingToken=number)
    history.end("ann", "Released", "Deleted")
    history.asset(2)
    assert history.judged() == ([], [])


def test_a_third_of_two_is_found() -> None:
    history = History()
    for name in ("ann", "bo"):
        history.lock(name, "Held")
    history.lease(0, "job", lock=False, token="3")
    assert history.judged()[0] == ["3 were told to hold vm, 0 of them all of it"]


def test_a_writer_beside_a_reader_is_found_on_locks_and_on_the_asset() -> None:
    history = History()
    history.lock("ann", "Held")
    history.lock("bo", "Held", mode="Exclusive")
    history.asset(1, 2, mode="Exclusive")
    assert len(history.judged()[0]) == 2


def test_a_token_that_is_given_again_and_a_mark_that_falls_are_found() -> None:
    history = History()
    history.asset(4)
    history.asset(3, mark=4)
    history.asset(mark=2)
    broken = history.judged()[0]
    assert broken == ["vm got token 3 again", "the high-water mark of vm fell from 4 to 2"]


def test_whoever_is_served_before_one_who_waited_longer_is_found() -> None:
    history = History()
    history.lock("old", "Pending", age=90)
    history.lock("young", "Pending", age=60)
    history.lease(0, "young", lock=True)
    assert history.judged()[0] == ["young came before old to vm"]


def test_nobody_is_wronged_who_has_a_slot_already_and_is_yet_to_be_told() -> None:
    history = History()
    history.lock("old", "Pending", age=90)
    history.lock("young", "Pending", age=60)
    history.lease(0, "old", lock=True)
    history.lease(1, "young", lock=True)
    assert history.judged()[0] == []


def test_nobody_is_wronged_whose_wait_was_over() -> None:
    history = History()
    history.lock("old", "Pending", age=601)
    history.lock("young", "Pending", age=60)
    history.lease(0, "young", lock=True)
    assert history.judged()[0] == []


def test_a_wait_that_was_cut_short_and_a_failure_for_want_of_a_lease_are_found() -> None:
    history = History()
    history.end("ann", "Failed", "WaitTimeout")
    history.end("bo", "Failed", "Locked")
    assert history.judged()[0] == ["ann waited less than 10m", "bo waited and failed: Locked"]


def test_what_has_ended_and_is_held_again_is_found() -> None:
    history = History()
    history.end("ann", "Released", "Deleted")
    history.lock("ann", "Held")
    assert history.judged()[0] == ["ann was Released and became Held"]


@pytest.mark.parametrize(("leading", "delay"), [(NOON - 100, 14), (NOON + 40, 5), (NOON + 50, 0), (None, 0)])
def test_a_delay_is_counted_from_the_deadline_or_from_when_somebody_is_seen_to_lead(
    leading: float | None, delay: float
) -> None:
    history = History()
    history.lease(0, "job", lock=False)
    history.lock("ann", "Pending")
    history.lease(0, "ann", lock=True, at=NOON + 45)
    assert history.judged(leading)[1] == [delay]
