"""What is left of a failing schedule is plain, still fails, and is played again by the command that is printed."""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from tests.mutants.kept import MUTANTS
from tests.mutants.run import planted
from tests.sim import shrinking
from tests.sim.faults import Drawn
from tests.sim.plan import Plan
from tests.sim.shrinking import Failure, Schedule, smallest
from tests.sim.world import Broken

ROOT = pathlib.Path(__file__).parents[2]
ROUGH = dataclasses.replace(
    Plan.of(0),
    roughness=3.0,
    crashes=3,
    freezes=3,
    lockers=4,
    jobs=2,
    capacity=3,
    skews=(9.0, -9.0),
    scales=True,
)
FAULTS = [(f"operator-{number % 2}/1", Drawn(number, "lost-reply", 1.0)) for number in range(1, 21)]


def fails_with(needed: set[int]) -> list[Schedule]:
    """Shrink a schedule that fails when anything crashes and none of these faults is muted; gives what was tried."""
    tried: list[Schedule] = []

    def happening(schedule: Schedule) -> list[tuple[str, Drawn]]:
        return [(name, drawn) for name, drawn in FAULTS if drawn.number not in schedule.muted.get(name, ())]

    def play(schedule: Schedule) -> None:
        tried.append(schedule)
        faults = happening(schedule)
        if schedule.plan.crashes and needed <= {drawn.number for _, drawn in faults}:
            raise Broken(schedule.seed, AssertionError("broken"), faults, "")

    schedule = Schedule(7, ROUGH)
    with pytest.raises(Broken) as broken:
        play(schedule)
    found = smallest(Failure(schedule, broken.value), play)
    assert {drawn.number for _, drawn in found.broken.drawn} == needed
    return [*tried, found.schedule]


def test_what_is_not_needed_for_the_failure_is_left_out() -> None:
    plan = fails_with({3, 14})[-1].plan
    assert (plan.crashes, plan.freezes, plan.lockers, plan.jobs, plan.capacity) == (1, 0, 1, 0, 1)
    assert not plan.scales


def test_many_faults_are_muted_in_few_tries() -> None:
    assert len(fails_with(set())) < 2 * len(FAULTS)


def test_the_command_means_what_was_played() -> None:
    schedule = fails_with({3})[-1]
    told = dict(re.findall(r"(\w+)='?([^' ]*)'?", schedule.command()))
    assert told["SEED"] == "7"
    assert shrinking.changed(Plan.of(7), told["WITH"]) == schedule.plan
    assert shrinking.muted(told["MUTE"]) == schedule.muted


def test_a_planted_bug_is_found_made_small_and_had_again_by_one_command(tmp_path: pathlib.Path) -> None:
    for part in ("src", "tests"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "pyproject.toml", "requirements-dev.lock"):
        shutil.copy2(ROOT / name, tmp_path)
    planted(next(mutant for mutant in MUTANTS if mutant.name == "skip the stamp"), tmp_path)
    venv = pathlib.Path(sys.prefix)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src"), "MAKEFLAGS": f"VENV={venv}"}

    def run(*words: str) -> str:
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode, done.stdout
        return done.stdout

    found = run(sys.executable, "-m", "tests.sim.run", "--seeds", "20", "--first")
    assert "faults: []" in found
    command = re.findall(r"^again: (make sim SEED=.*)$", found, re.MULTILINE)
    assert len(command) == 1
    again = run("sh", "-c", command[0])
    assert re.findall(r"^seed .*", again, re.MULTILINE) == re.findall(r"^seed .*", found, re.MULTILINE)
