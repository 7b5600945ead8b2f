"""Credentials that end while we run: token files and plugins, on the wire."""

import asyncio
import datetime
import json
import stat
import sys
from pathlib import Path

import pytest

from assetlock.kube.credentials import TokenFile, bearer
from assetlock.kube.errors import Unauthorized, Unreachable
from assetlock.kube.plugins import Plugin, PluginCredentials
from assetlock.kube.resources import LEASES

from .servers import answer, failure, in_turn, serving

V1 = "client.authentication.k8s.io/v1"
LEASE = {"metadata": {"name": "asset.vm", "resourceVersion": "7"}}


def tokens(server):
    return [request.headers["authorization"] for request in server.requests]


async def test_a_rotated_token_is_used_at_once_when_the_old_one_is_refused(connect, tmp_path):
    path = tmp_path / "token"
    path.write_text("old")
    async with serving(in_turn(answer(LEASE), failure(401), answer(LEASE))) as server:
        api = connect(server, credentials=TokenFile(path))
        await api.get(LEASES, "ns", "asset.vm")
        path.write_text("new")
        await api.replace(LEASES, "ns", "asset.vm", LEASE)
        assert tokens(server) == ["Bearer old", "Bearer old", "Bearer new"]


async def test_a_refused_token_that_was_not_rotated_is_tried_once(connect, tmp_path):
    path = tmp_path / "token"
    path.write_text("old")
    async with serving(in_turn(failure(401), failure(401))) as server:
        with pytest.raises(Unauthorized):
            await connect(server, credentials=TokenFile(path)).get(LEASES, "ns", "asset.vm")
        assert len(server.requests) == 1


async def test_a_token_file_is_looked_at_again_after_seconds(tmp_path):
    path = tmp_path / "token"
    path.write_text("old")
    time = 0.0
    source = TokenFile(path, clock=lambda: time)
    assert await source.current() == bearer("old")
    path.write_text("new")
    assert await source.current() == bearer("old")
    time = 10.0
    assert await source.current() == bearer("new")


@pytest.mark.parametrize("content", [None, b"", b"\n", b"two words", b"\xff\xfe"])
async def test_a_file_without_a_token_sends_nothing(connect, tmp_path, content):
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    async with serving(in_turn()) as server:
        with pytest.raises(Unreachable, match="token file"):
            await connect(server, credentials=TokenFile(path)).create(LEASES, "ns", LEASE)
        assert not server.requests


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


NOW = datetime.datetime(2026, 1, 1, 12, 0, tzinfo=datetime.UTC)


async def test_a_plugin_gives_a_token_which_is_used_until_shortly_before_it_ends(plugin):
    made = plugin(credential(token="t", expirationTimestamp="2026-01-01T12:15:00Z"))
    now = NOW
    source = PluginCredentials(made.plugin, now=lambda: now)
    assert await source.current() == bearer("t")
    now = NOW + datetime.timedelta(minutes=14)
    await source.current()
    assert made.runs() == 1
    now = NOW + datetime.timedelta(minutes=14, seconds=31)
    await source.current()
    assert made.runs() == 2


async def test_a_plugin_runs_once_however_many_requests_wait_for_it(plugin):
    made = plugin(credential(token="t"))
    source = PluginCredentials(made.plugin)
    await asyncio.gather(*(source.current() for _ in range(20)))
    assert made.runs() == 1


async def test_a_plugin_is_run_again_when_the_server_refuses_its_token(connect, plugin):
    made = plugin(credential(token="t"))
    async with serving(in_turn(failure(401), answer(LEASE))) as server:
        await connect(server, credentials=PluginCredentials(made.plugin)).get(LEASES, "ns", "asset.vm")
        assert made.runs() == 2


async def test_a_plugin_may_give_a_certificate(plugin):
    made = plugin(credential(clientCertificateData="cert", clientKeyData="key"))
    given = await PluginCredentials(made.plugin).current()
    assert (given.authorization, given.certificate, given.key) == (None, "cert", "key")


async def test_a_plugin_is_told_of_the_cluster_and_gets_its_arguments_and_variables(plugin):
    script = """
import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
token = "/".join([sys.argv[1], os.environ["COLOUR"], info["spec"]["cluster"]["server"]])
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": {"token": token}}))
"""
    made = plugin(script, args=["a"], env={"COLOUR": "red"}, cluster={"server": "https://x"})
    assert (await PluginCredentials(made.plugin).current()) == bearer("a/red/https://x")


async def test_a_plugin_that_hangs_is_killed_with_all_its_children(plugin, tmp_path):
    pids = tmp_path / "pids"
    script = f"""
import os, time
child = os.fork()
open({str(pids)!r}, "a").write(f"{{os.getpid()}}\\n")
time.sleep(600)
"""
    made = plugin(script, timeout=1.0)
    with pytest.raises(Unreachable, match="no answer within 1 s"):
        await PluginCredentials(made.plugin).current()
    async with asyncio.timeout(10):
        for pid in map(int, pids.read_text().split()):
            while _is_alive(pid):  # noqa: ASYNC110
                await asyncio.sleep(0.01)


def _is_alive(pid):
    try:
        stat_line = Path(f"/proc/{pid}/stat").read_text()
        return stat_line.rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


async def test_a_plugin_that_needs_a_terminal_is_not_started_where_there_is_none(plugin):
    made = plugin(credential(token="t"), interactive_mode="Always")
    with pytest.raises(Unreachable, match="needs a terminal"):
        await PluginCredentials(made.plugin, is_terminal=lambda: False).current()
    assert made.runs() == 0


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("import sys; print('no login', file=sys.stderr); sys.exit(3)", "exit code 3: no login"),
        ("print('hello')", "not JSON"),
        ("print('[]')", "no ExecCredential"),
        ("""print('{"kind": "ExecCredential", "apiVersion": "x/v9"}')""", "answers in x/v9"),
        (f"""print('{{"kind": "ExecCredential", "apiVersion": "{V1}"}}')""", "no status"),
        (credential(), "neither a token nor a certificate"),
        (credential(token="t", expirationTimestamp="soon"), "time of expiry"),
    ],
)
async def test_a_plugin_that_fails_is_named_with_what_went_wrong(plugin, script, complaint):
    with pytest.raises(Unreachable, match=f"plugin.*{complaint}"):
        await PluginCredentials(plugin(script).plugin).current()


async def test_a_plugin_that_is_not_there_says_how_to_get_it():
    missing = Plugin("/nowhere/login", V1, install_hint="run: apt install login")
    with pytest.raises(Unreachable, match="apt install login"):
        await PluginCredentials(missing).current()
