"""A run of the bench always reports: what fails is a row of its own, and what can be measured is."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
from collections.abc import AsyncGenerator, Iterator

import pytest
from benchmarks import rows, runner
from benchmarks.registry import Measure, Scenario, scenarios
from benchmarks.rows import Failure, Row, Samples
from benchmarks.stage import Stage

FAST = Row("fast", Samples("fast", [1.0]), Samples("yardstick", [1.0]), "ms", 2)


@contextlib.contextmanager
def nowhere() -> Iterator[Stage]:
    yield None  # type: ignore[misc]


@contextlib.contextmanager
def broken() -> Iterator[Stage]:
    raise OSError("no control plane")
    yield


async def fast(stage: Stage) -> AsyncGenerator[Row, None]:
    yield FAST


async def half(stage: Stage) -> AsyncGenerator[Row, None]:
    yield FAST
    raise ExceptionGroup("in a task group", [RuntimeError("waiters were left over")])


async def hanging(stage: Stage) -> AsyncGenerator[Row, None]:
    yield FAST
    await asyncio.Event().wait()


def taken_of(*measures: Measure, seconds: float = 60, within: float = 600) -> list[Row | Failure]:
    taken: list[Row | Failure] = []
    runner.run([Scenario(m.__name__, seconds, m) for m in measures], nowhere, taken, within=within)
    return taken


def test_a_scenario_that_fails_is_a_row_with_its_reason_and_the_others_go_on() -> None:
    failed = Failure("half", "RuntimeError: waiters were left over")
    assert taken_of(half, fast) == [FAST, failed, FAST]


def test_a_scenario_that_hangs_is_cut_off_and_keeps_what_it_has_measured() -> None:
    assert taken_of(hanging, fast, seconds=0.05) == [
        FAST,
        Failure("hanging", "TimeoutError: took longer than 0 s"),
        FAST,
    ]


def test_a_control_plane_that_does_not_start_is_a_row() -> None:
    taken: list[Row | Failure] = []
    runner.run([Scenario("fast", 60, fast)], broken, taken)
    assert taken == [Failure("fast", "OSError: no control plane")]


def test_what_there_is_no_time_left_for_is_said() -> None:
    assert taken_of(fast, within=10) == [Failure("fast", "not begun: the whole takes at most 10 s")]


def test_the_report_has_p99_beside_each_median_and_a_reason_for_what_failed(tmp_path: pathlib.Path) -> None:
    rows.save([FAST, Failure("half", "because")], tmp_path / "bench.json")
    measured, failed = json.loads((tmp_path / "bench.json").read_text())
    assert measured["p99"] == 1.0 and measured["yardstick"] == {"name": "yardstick", "value": 1.0, "p99": 1.0}
    assert failed == {"name": "half", "ok": False, "reason": "because"}


def test_the_table_shows_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    rows.show([FAST, Failure("half", "because")])
    assert "FAILED: because" in capsys.readouterr().out


def test_scenarios_can_be_named_and_a_wrong_name_is_refused() -> None:
    assert [found.name for found in scenarios(["handover", "grant"])] == ["grant", "handover"]
    with pytest.raises(ValueError, match=r"no scenario nothing; there are .*grant"):
        scenarios(["nothing"])
