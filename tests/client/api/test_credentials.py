"""Credentials that end while a program runs: token files and plugins."""

import concurrent.futures
import datetime
import json
import os
import pathlib
import stat
import sys
import time

import pytest

from assetlock.client.api import Unreachable
from assetlock.client.api.credentials import TokenFile, bearer
from assetlock.client.api.plugins import Plugin, PluginCredentials

V1 = "client.authentication.k8s.io/v1"
NOW = datetime.datetime(2026, 1, 1, 12, 0, tzinfo=datetime.UTC)


def test_a_token_file_is_read_again_after_seconds_and_when_its_token_was_refused(tmp_path):
    path, now = tmp_path / "token", 0.0
    path.write_text("old")
    source = TokenFile(path, clock=lambda: now)
    assert source.current() == bearer("old")
    path.write_text("new")
    assert source.current() == bearer("old")
    assert source.refused(bearer("old"))
    assert source.current() == bearer("new")
    assert not source.refused(bearer("new"))
    path.write_text("newer")
    now = 10.0
    assert source.current() == bearer("newer")


@pytest.mark.parametrize("content", [None, b"", b"\n", b"two words", b"\xff\xfe"])
def test_a_file_without_a_token_is_unreachable(tmp_path, content):
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Unreachable, match="token file"):
        TokenFile(path).current()


@pytest.fixture
def plugin(tmp_path):
    """Makes a plugin out of a Python script; `runs()` counts how often it ran."""

    class Made:
        def __init__(self, script, **options):
            path = tmp_path / "plugin"
            body = f"open({str(tmp_path / 'runs')!r}, 'a').write('x')\n{script}"
            path.write_text(f"#!{sys.executable} -S\n{body}")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
            self.plugin = Plugin(str(path), V1, **options)

        def runs(self):
            path = tmp_path / "runs"
            return len(path.read_text()) if path.exists() else 0

    return Made


def credential(**status):
    answered = json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})
    return f"print({answered!r})"


def test_a_plugins_token_is_used_until_shortly_before_it_ends(plugin):
    made = plugin(credential(token="t", expirationTimestamp="2026-01-01T12:15:00Z"))
    now = NOW
    source = PluginCredentials(made.plugin, now=lambda: now)
    assert source.current() == bearer("t")
    now = NOW + datetime.timedelta(minutes=14)
    source.current()
    assert made.runs() == 1
    now = NOW + datetime.timedelta(minutes=14, seconds=31)
    source.current()
    assert made.runs() == 2


def test_a_plugin_runs_once_however_many_threads_wait_for_it(plugin):
    made = plugin(credential(token="t"))
    source = PluginCredentials(made.plugin)
    with concurrent.futures.ThreadPoolExecutor(20) as threads:
        assert set(threads.map(lambda _: source.current().authorization, range(20))) == {"Bearer t"}
    assert made.runs() == 1


def test_a_plugin_runs_again_when_its_token_was_refused(plugin):
    made = plugin(credential(token="t"))
    source = PluginCredentials(made.plugin)
    assert source.refused(source.current())
    source.current()
    assert made.runs() == 2


def test_a_plugin_that_hangs_is_killed_with_its_children(plugin, tmp_path):
    script = (
        "import os, subprocess, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)"
    )
    made = plugin(script, timeout=5.0)
    with pytest.raises(Unreachable, match="no answer within 5 s"):
        PluginCredentials(made.plugin).current()
    child = int((tmp_path / "pid").read_text())
    while not _is_gone(child):
        time.sleep(0.01)


def _is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except FileNotFoundError:
        return True


def test_a_plugin_that_needs_a_terminal_is_not_started_without_one(plugin):
    made = plugin(credential(token="t"), interactive_mode="Always")
    with pytest.raises(Unreachable, match="needs a terminal"):
        PluginCredentials(made.plugin, is_terminal=lambda: False).current()
    assert made.runs() == 0


def test_a_plugin_is_passed_the_cluster_and_reads_nothing_from_our_input(plugin):
    made = plugin(
        "import json, os, sys\ninfo = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "assert sys.stdin.read() == ''\nassert info['spec']['interactive'] is False\n"
        + credential(token="t").replace("'{", "json.dumps(info['spec']['cluster']) and '{"),
        cluster={"server": "https://x"},
    )
    assert PluginCredentials(made.plugin, is_terminal=lambda: False).current() == bearer("t")


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("print('no json')", "not JSON"),
        ("print('{}')", "no ExecCredential"),
        (credential(token="t").replace("/v1", "/v2"), "answers in"),
        (credential(), "neither a token nor a certificate"),
        (credential(token="t", expirationTimestamp="soon"), "time of expiry"),
        ("import sys; sys.exit('log in first')", "exit code 1: log in first"),
    ],
)
def test_a_plugin_that_gives_nothing_usable_is_named(plugin, script, complaint):
    made = plugin(script)
    with pytest.raises(Unreachable, match=complaint) as raised:
        PluginCredentials(made.plugin, is_terminal=lambda: False).current()
    assert made.plugin.command in str(raised.value)


def test_a_plugin_that_is_not_installed_says_how_to_install_it():
    made = Plugin(os.fspath(pathlib.Path("/nowhere/login")), V1, install_hint="apt install login")
    with pytest.raises(Unreachable, match="apt install login"):
        PluginCredentials(made).current()
