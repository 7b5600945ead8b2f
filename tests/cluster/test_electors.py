"""Leader elections of other people's libraries, unchanged: each is a lock, excludes the others, and is fenced."""

from __future__ import annotations

import contextlib
import pathlib
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests import go
from tests.cluster.conftest import Operated, lease, until

pytestmark = pytest.mark.timeout(900)
"""The first to need client-go's election builds it."""

ELECTORS = pathlib.Path(__file__).parent / "electors"
LEASE = "asset.vm-1"
TOKEN = r"jsonpath={.metadata.annotations.assetlock\.dev/token}"


@dataclass
class Elector:
    """A candidate, and what it said so far."""

    process: subprocess.Popen[bytes]
    output: pathlib.Path

    def said(self) -> list[str]:
        return self.output.read_text().split()

    def leads(self, *, seconds: float = 40) -> None:
        until(lambda: self.said()[-1:] == ["leading"], f"it leads: {self.said()}", seconds=seconds)


Start = Callable[..., Elector]


@pytest.fixture
def start(operated: Operated, tmp_path: pathlib.Path) -> Iterator[Start]:
    """Starts candidates; none outlives the test."""
    with contextlib.ExitStack() as running:

        def begin(library: str, user: str, *more: str) -> Elector:
            kubeconfig = str(operated.cluster.kubeconfig_for(user))
            output = tmp_path / f"{user}-{library}.log"
            with output.open("wb") as said:
                argv = argv_of(library, kubeconfig, operated.namespace, LEASE, user)
                process = subprocess.Popen([*argv, *more], stdout=said, stderr=subprocess.DEVNULL)
            running.callback(process.wait)
            running.callback(process.kill)
            return Elector(process, output)

        yield begin


def attempt(operated: Operated, user: str) -> Any:
    """A write that would change something."""
    return operated.write("app", user, uuid.uuid4().hex)


def argv_of(library: str, kubeconfig: str, namespace: str, name: str, identity: str) -> list[str]:
    if library == "python":
        return [sys.executable, str(ELECTORS / "python_client.py"), kubeconfig, namespace, name, identity]
    elector = go.program(ELECTORS / "client_go", "assetlock.dev/tests/elector")
    return [
        str(elector),
        f"--kubeconfig={kubeconfig}",
        f"--namespace={namespace}",
        f"--name={name}",
        f"--identity={identity}",
    ]


@pytest.fixture
def free_lease(operated: Operated) -> None:
    """An asset, and the Lease that electors are pointed at."""
    operated.asset("vm-1", "app")
    body = lease("vm-1")
    body["spec"] = {}
    operated.create(body)


@pytest.mark.usefixtures("free_lease")
@pytest.mark.parametrize("library", ["client-go", "python"])
def test_an_unchanged_leader_election_is_a_lock_like_any_other(
    operated: Operated, start: Start, library: str
) -> None:
    elector = start(library, "alice")
    elector.leads()
    operated.wait("lease/asset.vm-1", TOKEN)
    assert attempt(operated, "alice").returncode == 0
    refused = attempt(operated, "bob")
    assert "held by alice" in refused.stderr
    operated.lock("impatient", "bob")
    assert "held by alice (a Lease)" in operated.settled("impatient")["message"]
    operated.lock("second", "bob", wait="10m", ttl="1h")
    operated.kubectl("wait", "alk/second", "--for=jsonpath={.status.state}=Pending", "--timeout=10s")
    first = operated.get("lease", "asset.vm-1")["spec"]["renewTime"]
    until(lambda: operated.get("lease", "asset.vm-1")["spec"]["renewTime"] > first, "it renews")
    assert elector.said() == ["leading"], "it was not disturbed by what the operator wrote on its Lease"
    elector.process.kill()
    operated.wait("alk/second", "condition=Acquired", timeout=30)
    assert attempt(operated, "alice").returncode == 1
    assert attempt(operated, "bob").returncode == 0


@pytest.mark.usefixtures("free_lease")
@pytest.mark.parametrize("library", ["client-go", "python"])
def test_a_leader_election_waits_for_an_asset_lock_and_leads_when_that_ends(
    operated: Operated, start: Start, library: str
) -> None:
    operated.held("first", "bob", ttl="1h")
    elector = start(library, "alice")
    until(lambda: attempt(operated, "alice").returncode == 1, "alice is a stranger")
    operated.lock("second", "carol", wait="10m")
    operated.kubectl("delete", "alk", "first", user="bob")
    operated.wait("alk/second", "condition=Acquired")
    assert elector.said() == [], "it has not led while others held the lock"
    operated.kubectl("delete", "alk", "second", user="carol")
    elector.leads()
    operated.wait("lease/asset.vm-1", TOKEN)
    assert operated.get("lease", "asset.vm-1")["metadata"]["annotations"]["assetlock.dev/token"] == "3"
    assert attempt(operated, "alice").returncode == 0


@pytest.mark.usefixtures("free_lease")
def test_electors_of_both_libraries_exclude_each_other(operated: Operated, start: Start) -> None:
    first = start("client-go", "alice")
    first.leads()
    second = start("python", "bob")
    until(lambda: bool(attempt(operated, "bob").stderr), "bob does not lead")
    first.process.terminate()
    second.leads()
    assert first.said() == ["leading", "stopped"]
    operated.kubectl("wait", "ast/vm-1", "--for=jsonpath={.status.holders[0].identity}=bob", "--timeout=10s")
    third = start("client-go", "carol")
    second.process.kill()
    third.leads()
    tokens = operated.get("ast", "vm-1")["status"]["fencingToken"]
    assert tokens == 3


def test_client_go_creates_the_lease_itself_where_it_is_told_the_label(
    operated: Operated, start: Start
) -> None:
    operated.asset("vm-1", "app")
    elector = start("client-go", "alice", "--asset=vm-1")
    elector.leads()
    operated.wait("lease/asset.vm-1", TOKEN)
    assert attempt(operated, "bob").returncode == 1
    elector.process.terminate()
    operated.kubectl("wait", "lease/asset.vm-1", "--for=delete", "--timeout=10s")
    operated.held("next", "bob")


@pytest.mark.usefixtures("free_lease")
@pytest.mark.parametrize("library", ["client-go", "python"])
def test_a_leader_whose_lease_is_taken_away_is_told_in_time_and_can_stand_again(
    operated: Operated, start: Start, library: str
) -> None:
    elector = start(library, "alice")
    elector.leads()
    operated.lock("urgent", "bob", wait="10m", ttl="5s")
    operated.kubectl("wait", "alk/urgent", "--for=jsonpath={.status.state}=Pending", "--timeout=10s")
    elector.process.send_signal(signal.SIGSTOP)
    revoked = '--patch={"spec":{"holderIdentity":""}}'
    operated.kubectl("patch", "lease", "asset.vm-1", "--type=merge", revoked)
    operated.wait("alk/urgent", "condition=Acquired")
    elector.process.send_signal(signal.SIGCONT)
    until(lambda: elector.said() == ["leading", "stopped"], "it is told", seconds=20)
    again = start(library, "carol")
    again.leads()
    operated.kubectl("wait", "alk/urgent", "--for=condition=Finished", "--timeout=10s")
