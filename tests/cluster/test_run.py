"""`assetlock run`: a command that runs while a lock is held, and not a moment longer."""

from __future__ import annotations

import contextlib
import datetime
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator

import pytest
import yaml
from tests.cli.test_quick_commands import HEAVY, loaded_by

from .conftest import Operated, until
from .running import Commands, processes_with, wait_until
from .tunnel import tunnel

TTL = "10s"
"""The shortest that `run` takes."""


@pytest.fixture
def assetlock(operated: Operated, tmp_path: pathlib.Path) -> Iterator[Commands]:
    operated.asset()
    commands = Commands(operated, tmp_path)
    yield commands
    commands.stop()


def test_a_command_runs_while_the_lock_is_held_and_its_exit_code_is_ours(assetlock: Commands) -> None:
    script = 'echo "$ASSETLOCK_ASSET $ASSETLOCK_TOKEN $ASSETLOCK_EXPIRES $ASSETLOCK_LOCK"; read it; echo $it; exit 7'
    process = assetlock.start(
        "run", "vm-1", "--reason", "patch", "--", "sh", "-c", script, stdin=subprocess.PIPE
    )
    assert process.stdout
    asset, token, expires, name = process.stdout.readline().split()
    held = assetlock.operated.get("alk", name)
    assert (held["status"]["state"], held["spec"]["reason"]) == ("Held", "patch")
    assert (asset, int(token), expires) == (
        "vm-1",
        held["status"]["fencingToken"],
        held["status"]["expireTime"],
    )
    output, errors = process.communicate("hello\n", timeout=60)
    assert (output, errors, process.returncode) == ("hello\n", "", 7)
    assert assetlock.locks() == []


def test_several_assets_are_held_together(assetlock: Commands) -> None:
    assetlock.operated.asset("vm-2")
    done = assetlock("run", "vm-1", "vm-2", "--", "sh", "-c", 'echo "$ASSETLOCK_ASSET $ASSETLOCK_TOKEN"')
    assert done.stdout == "vm-1 vm-2 1 1\n"


def test_what_can_not_be_started_takes_no_lock(assetlock: Commands) -> None:
    assert assetlock("run", "vm-1", "--", "no-such-command").returncode == 127
    assert assetlock("run", "vm-1", "--", "/etc/passwd").returncode == 126
    assert assetlock.operated.get("asset", "vm-1").get("status", {}).get("fencingToken", 0) == 0


def test_a_command_that_a_signal_ends_gives_128_and_its_number(assetlock: Commands) -> None:
    assert assetlock("run", "vm-1", "--", "sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_each_failure_has_its_exit_code(assetlock: Commands, tmp_path: pathlib.Path) -> None:
    assert assetlock("run", "no-such-asset", "--", "true").returncode == os.EX_NOINPUT
    assert assetlock("run", "vm-1", "--as", "stranger", "--", "true").returncode == os.EX_NOPERM
    assert assetlock("run", "vm-1", "--context", "none", "--", "true").returncode == os.EX_CONFIG
    for arguments in (("pay/status", "--", "true"), ("vm-1", "true"), ("vm-1", "--ttl", "1y", "--", "true")):
        assert assetlock("run", *arguments).returncode == os.EX_USAGE
    assert "did you mean pay-status?" in assetlock("run", "pay/status", "--", "true").stderr
    config = yaml.safe_load(assetlock.operated.cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "nobody").write_text(yaml.safe_dump(config))
    unreachable = assetlock("run", "vm-1", "--kubeconfig", str(tmp_path / "nobody"), "--", "true")
    assert (unreachable.returncode, "127.0.0.1:1" in unreachable.stderr) == (os.EX_UNAVAILABLE, True)


def test_a_lock_that_another_holds_is_a_conflict_and_says_who(assetlock: Commands) -> None:
    assetlock.operated.held("other", "bob", reason="upgrade")
    refused = assetlock("run", "vm-1", "--", "true")
    assert refused.returncode == os.EX_TEMPFAIL
    assert "held by bob" in refused.stderr
    assert assetlock("run", "vm-1", "-E", "9", "--", "true").returncode == 9
    waited = assetlock("run", "vm-1", "--wait", "1s", "--", "true")
    assert (waited.returncode, "position 1 in the queue" in waited.stderr) == (os.EX_TEMPFAIL, True)
    assert [lock["metadata"]["name"] for lock in assetlock.locks()] == ["other"]


def test_one_that_waits_says_for_whom_and_comes_next(assetlock: Commands) -> None:
    assetlock.operated.held("other", "bob")
    process = assetlock.start("run", "vm-1", "--wait", "60s", "--", "echo", "mine")
    assert process.stderr
    assert "waiting for vm-1: held by bob" in process.stderr.readline()
    assetlock.operated.kubectl("delete", "alk/other", user="bob")
    assert process.communicate(timeout=60)[0] == "mine\n"
    assert process.returncode == 0


def test_a_lock_is_renewed_for_as_long_as_the_command_runs(assetlock: Commands) -> None:
    done = assetlock("run", "vm-1", "--ttl", TTL, "--", "sleep", "14")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_whoever_is_interrupted_while_waiting_leaves_nothing_behind(
    assetlock: Commands, number: signal.Signals
) -> None:
    assetlock.operated.held("other", "bob")
    process = assetlock.start("run", "vm-1", "--wait", "60s", "--", "true")
    assert process.stderr
    process.stderr.readline()
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert [lock["metadata"]["name"] for lock in assetlock.locks()] == ["other"]


def test_a_command_that_leaves_something_running_does_not_leave_it_running_without_the_lock(
    assetlock: Commands, tmp_path: pathlib.Path
) -> None:
    marker = str(tmp_path / "left-behind")
    left = ("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done", "sh", marker)
    script = f"{shlex.join(left)} > /dev/null & exit 3"
    done = assetlock("run", "vm-1", "--ttl", TTL, "--kill-after", "1s", "--", "sh", "-c", script)
    assert done.returncode == 3
    assert not processes_with(marker)


def test_signals_are_passed_on_and_a_second_sigterm_kills(assetlock: Commands) -> None:
    process, ticks = assetlock.ticking()
    process.send_signal(signal.SIGTERM)
    wait_until(lambda: ticks.signals == ["TERM"], process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL
    assert ticks.are_over()
    assert assetlock.locks() == []


def test_a_revoked_lock_ends_the_whole_group(assetlock: Commands) -> None:
    process, ticks = assetlock.ticking("--kill-after", "1s")
    assetlock.operated.cluster.kubectl(
        "annotate",
        "lease",
        "asset.vm-1",
        "assetlock.dev/revoked-by=admin",
        "-n",
        assetlock.operated.namespace,
    )
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, "the lock is lost: Revoked" in errors) == (76, True)
    assert ticks.are_over()
    assert ticks.signals == ["TERM"]


def test_a_command_may_go_on_without_its_lock_if_that_is_asked_for(assetlock: Commands) -> None:
    process = assetlock.start(
        "run",
        "vm-1",
        "--on-lost",
        "ignore",
        "--",
        "sh",
        "-c",
        "echo begun; read line; echo done",
        stdin=subprocess.PIPE,
    )
    assert process.stdout
    assert process.stderr
    process.stdout.readline()
    assetlock.operated.kubectl("delete", "alk", "--all", user="alice")
    assert "the lock is lost" in process.stderr.readline()
    assert process.communicate("\n", timeout=60)[0] == "done\n"
    assert process.returncode == 76


def granted_to_the_next(assetlock: Commands) -> float:
    """Wait for the next holder; when it got the lock."""
    assetlock.operated.lock("next", "bob", wait="2m")
    until(
        lambda: assetlock.operated.get("alk", "next").get("status", {}).get("state") == "Held",
        "granted",
        seconds=60,
    )
    acquired = assetlock.operated.get("alk", "next")["status"]["acquireTime"]
    return datetime.datetime.fromisoformat(acquired).timestamp()


def test_a_command_whose_wrapper_is_killed_does_not_outlive_the_lock(assetlock: Commands) -> None:
    process, ticks = assetlock.ticking("--ttl", TTL)
    process.kill()
    granted = granted_to_the_next(assetlock)
    assert ticks.are_over()
    assert ticks.last < granted + 1
    assert ticks.signals == ["TERM"]


def test_a_command_whose_wrapper_is_stopped_does_not_outlive_the_lock(assetlock: Commands) -> None:
    process, ticks = assetlock.ticking("--ttl", TTL)
    process.send_signal(signal.SIGSTOP)
    granted = granted_to_the_next(assetlock)
    assert ticks.are_over()
    assert ticks.last < granted + 1
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
    assert process.returncode == 76


def test_who_slept_longer_than_the_lock_lasts_is_killed_as_soon_as_it_runs_again(assetlock: Commands) -> None:
    process, ticks = assetlock.ticking("--ttl", TTL)
    everything = list(processes_with(str(ticks.path)))
    assert len(everything) >= 4  # wrapper, watchdog, command and its child
    for pid in everything:
        os.kill(pid, signal.SIGSTOP)
    granted_to_the_next(assetlock)
    written = len(ticks.path.read_text())
    for pid in everything:
        with contextlib.suppress(ProcessLookupError):  # whoever wakes first kills the others
            os.kill(pid, signal.SIGCONT)
    process.communicate(timeout=60)
    assert process.returncode == 76
    assert ticks.are_over()
    assert len(ticks.path.read_text()) - written < 10 * len("1234567890.123456789\n")


def kubeconfig_through(proxy: str, assetlock: Commands, folder: pathlib.Path) -> pathlib.Path:
    config = yaml.safe_load(assetlock.operated.cluster.kubeconfig_for("alice").read_text())
    config["clusters"][0]["cluster"]["proxy-url"] = proxy
    path = folder / "proxied"
    path.write_text(yaml.safe_dump(config))
    return path


def test_who_can_not_reach_the_api_server_for_too_long_ends_before_the_lock_does(
    assetlock: Commands, tmp_path: pathlib.Path
) -> None:
    with tunnel() as cable:
        assetlock.kubeconfig = kubeconfig_through(cable.url, assetlock, tmp_path)
        process, ticks = assetlock.ticking("--ttl", TTL)
        cable.cut()
        granted = granted_to_the_next(assetlock)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 76
    assert "could not be renewed in time" in errors
    assert ticks.are_over()
    assert ticks.last < granted + 1


def test_an_api_server_that_is_away_for_a_while_ends_nothing(
    assetlock: Commands, tmp_path: pathlib.Path
) -> None:
    with tunnel() as cable:
        assetlock.kubeconfig = kubeconfig_through(cable.url, assetlock, tmp_path)
        process = assetlock.start("run", "vm-1", "--ttl", "20s", "--", "sh", "-c", "echo begun; sleep 24")
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        cable.cut()
        assert "can't be renewed now" in process.stderr.readline()
        cable.mend()
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert assetlock.locks() == []


def test_as_process_1_of_a_container_it_collects_what_others_leave(assetlock: Commands) -> None:
    unshare = shutil.which("unshare")
    if unshare is None or os.geteuid() != 0:
        pytest.skip("making a namespace for processes needs unshare, and root")
    script = "setsid sh -c 'sleep 0.1 & exit 0'; sleep 1; ps -eo stat= | grep -c Z; exit 5"
    argv = [
        unshare,
        "--pid",
        "--fork",
        "--mount-proc",
        *assetlock.argv("run", "vm-1", "--", "sh", "-c", script),
    ]
    done = subprocess.run(argv, env=assetlock.environment(), capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("0\n", 5)


def test_two_runs_wait_for_each_other_in_turn(assetlock: Commands, tmp_path: pathlib.Path) -> None:
    book = tmp_path / "book"
    script = f"echo in >> {book}; sleep 0.2; echo out >> {book}"
    processes = [
        assetlock.start("run", "vm-1", "--wait", "2m", "-q", "--", "sh", "-c", script) for _ in range(4)
    ]
    for process in processes:
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert book.read_text().split() == ["in", "out"] * 4


def test_a_whole_run_loads_nothing_heavy(assetlock: Commands) -> None:
    kubeconfig = str(assetlock.operated.cluster.kubeconfig_for("alice"))
    arguments = ("run", "-n", assetlock.operated.namespace, "vm-1", "--ttl", TTL, "--", "true")
    code, modules = loaded_by(*arguments, KUBECONFIG=kubeconfig)
    assert code == 0
    assert not modules & set(HEAVY)
