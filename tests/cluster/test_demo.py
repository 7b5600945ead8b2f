"""The demo does what it says, and says so when it does not."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from assetlock.cli._demo_stage import DemoFailed, Stage


def test_the_demo_shows_what_it_promises_and_leaves_nothing_running(tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "assetlock.cli.main", "demo"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "Error from server (Locked)" in done.stdout
    assert "(AlreadyExists)" in done.stdout
    assert "ValidatingAdmissionPolicy 'assetlock-targets'" in done.stdout
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in running


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("true", {"says": ["granted"]}),
        ("false", {}),
        ("true", {"fails": True}),
        ("echo no change", {"lacks": ["no change"]}),
    ],
)
def test_a_step_that_does_not_show_what_it_says_fails_the_demo(
    tmp_path: pathlib.Path, command: str, expected: dict[str, object]
) -> None:
    stage = Stage(tmp_path)
    stage.enter("alice", {})
    stage.begin("the third act")
    with pytest.raises(DemoFailed, match="the third act"):
        stage.run("alice", command, **expected)  # type: ignore[arg-type]
