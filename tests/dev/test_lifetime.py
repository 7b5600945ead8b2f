"""A control plane lives exactly as long as it should, and leaves nothing behind."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
from collections.abc import Callable

import pytest

from assetlock.dev import ControlPlane, StartFailed, components, folders
from assetlock.dev.components import Ports
from tests.dev.conftest import Run, eventually, processes_in

Started = Callable[..., subprocess.Popen[str]]

STARTS_ONE = """
import signal
from assetlock.dev import ControlPlane
with ControlPlane() as running:
    running.add_process("companion", ["sleep", "4711"])
    print(running.folder, flush=True)
    signal.pause()
"""


def gone(folder: pathlib.Path) -> bool:
    return not folder.exists() and not processes_in(folder)


def test_up_and_down_leave_no_process_and_no_folder(assetlock: Run, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "state" / "assetlock" / "dev" / "default"
    up = assetlock("dev", "up")
    assert up.returncode == 0, up.stderr
    assert len(processes_in(folder)) == 3
    assert "is ready at https://127.0.0.1:" in up.stdout
    assert assetlock("dev", "down").returncode == 0
    assert gone(folder)


def test_two_names_run_side_by_side_and_end_apart(assetlock: Run, tmp_path: pathlib.Path) -> None:
    home = tmp_path / "state" / "assetlock" / "dev"
    assert assetlock("dev", "up", "--name", "one").returncode == 0
    assert assetlock("dev", "up", "--name", "two").returncode == 0
    assert folders.read_state(home / "one") != folders.read_state(home / "two")
    assetlock("dev", "down", "--name", "one")
    assert gone(home / "one")
    assert "two: ready" in assetlock("dev", "status").stdout
    assert len(processes_in(home / "two")) == 3


def test_ctrl_c_stops_and_removes_what_runs_in_the_foreground(
    assetlock: Run, started: Started, tmp_path: pathlib.Path
) -> None:
    process = started("-m", "assetlock.cli.main", "dev", "up", "--foreground")
    assert process.stdout is not None
    assert "ready" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert gone(tmp_path / "state" / "assetlock" / "dev" / "default")


def test_ctrl_c_while_it_starts_leaves_nothing(
    assetlock: Run, started: Started, tmp_path: pathlib.Path
) -> None:
    folder = tmp_path / "state" / "assetlock" / "dev" / "default"
    process = started("-m", "assetlock.cli.main", "dev", "up")
    eventually(lambda: len(processes_in(folder)) >= 2)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert gone(folder)


def test_a_parent_that_is_killed_takes_everything_along(started: Started) -> None:
    parent = started("-c", STARTS_ONE)
    assert parent.stdout is not None
    folder = pathlib.Path(parent.stdout.readline().strip())
    companions = [each.pid for each in _state(folder).processes if each.name == "companion"]
    assert len(processes_in(folder)) == 3
    parent.kill()
    eventually(lambda: gone(folder))
    assert not any(pathlib.Path(f"/proc/{pid}").exists() for pid in companions)


def test_a_supervisor_that_is_killed_takes_its_children_along_and_down_tidies_up(
    assetlock: Run, tmp_path: pathlib.Path
) -> None:
    folder = tmp_path / "state" / "assetlock" / "dev" / "default"
    assetlock("dev", "up")
    os.kill(_state(folder).supervisor, signal.SIGKILL)
    eventually(lambda: not processes_in(folder))
    assert "abandoned" in assetlock("dev", "status").stdout
    assetlock("dev", "down")
    assert gone(folder)


def test_when_etcd_dies_the_rest_stops_and_status_says_why(assetlock: Run, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "state" / "assetlock" / "dev" / "default"
    assetlock("dev", "up")
    etcd = next(each for each in _state(folder).processes if each.name == "etcd")
    os.kill(etcd.pid, signal.SIGKILL)
    eventually(lambda: not processes_in(folder) and not folders.is_claimed(folder))
    status = assetlock("dev", "status")
    assert "default: failed" in status.stdout
    assert "etcd ended with -9" in status.stdout


def test_a_port_that_was_taken_meanwhile_means_another_try(
    monkeypatch: pytest.MonkeyPatch, control_plane: ControlPlane, started: Started
) -> None:
    taken = int(control_plane.server.rsplit(":", 1)[1])
    script = f"""
import asyncio, sys
from assetlock.dev import components, supervisor
free = components.Ports.free
tries = []
def unlucky():
    tries.append(1)
    ports = free()
    return components.Ports({taken}, ports.etcd_peer, ports.apiserver) if len(tries) == 1 else ports
components.Ports.free = unlucky
code = asyncio.run(supervisor.main())
print(len(tries), file=sys.stderr)
sys.exit(code)
"""
    monkeypatch.setattr("assetlock.dev.controlplane.SUPERVISOR", ("-c", script))
    with ControlPlane() as second:
        assert second.server != control_plane.server
        assert second.kubectl("get", "namespaces").returncode == 0


def test_free_ports_differ() -> None:
    ports = Ports.free()
    assert len({ports.etcd, ports.etcd_peer, ports.apiserver}) == 3


def test_an_added_process_that_ends_before_it_is_ready_says_its_last_words(
    control_plane: ControlPlane,
) -> None:
    script = ["sh", "-c", "echo no licence found; exit 3"]
    with pytest.raises(StartFailed, match=r"ended with 3 .*\n.*no licence found"):
        control_plane.add_process("broken", script, ready_url=f"http://{components.LOOPBACK}:9/")


def test_an_added_process_is_started_again_when_asked_to(control_plane: ControlPlane) -> None:
    first = control_plane.add_process("phoenix", ["sleep", "4712"], restart=True)
    os.kill(first.pid, signal.SIGKILL)
    eventually(lambda: _pid(control_plane.folder, "phoenix") not in (None, first.pid))
    control_plane.remove_process("phoenix")
    assert _pid(control_plane.folder, "phoenix") is None


def _state(folder: pathlib.Path) -> folders.State:
    state = folders.read_state(folder)
    assert state is not None
    return state


def _pid(folder: pathlib.Path, name: str) -> int | None:
    return next((each.pid for each in _state(folder).processes if each.name == name), None)
