"""Leases made by hand, through their whole life, on a real API server with the whole operator."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from tests.cluster.conftest import Operated, lease, until

LEASE = "lease/asset.vm-1"
TOKEN = r"jsonpath={.metadata.annotations.assetlock\.dev/token}"


@pytest.fixture
def asset(operated: Operated) -> Operated:
    """A namespace with an asset in it."""
    operated.asset("vm-1", "app")
    return operated


def patch(operated: Operated, user: str | None, **spec: Any) -> Any:
    body = json.dumps({"spec": spec})
    return operated.kubectl("patch", LEASE, "--type=merge", f"--patch={body}", user=user, check=False)


def now(*, microsecond: int = 0) -> str:
    moment = datetime.datetime.now(datetime.UTC).replace(microsecond=microsecond)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def renewed(operated: Operated) -> str:
    return str(operated.get("lease", "asset.vm-1")["spec"]["renewTime"])


@pytest.mark.parametrize("microsecond", [0, 1, 999999])
def test_a_renewal_counts_from_the_servers_clock_whatever_fraction_is_written(
    asset: Operated, microsecond: int
) -> None:
    asset.create(lease("vm-1", "alice"), user="alice")
    asset.wait(LEASE, TOKEN)
    before = renewed(asset)
    done = patch(asset, "alice", renewTime=now(microsecond=microsecond))
    assert done.returncode == 0, done.stderr
    assert renewed(asset) > before
    assert asset.get("lease", "asset.vm-1")["metadata"]["annotations"]["assetlock.dev/token"] == "1"


def test_a_client_that_renews_keeps_the_lock_beyond_its_duration(asset: Operated) -> None:
    asset.create(lease("vm-1", "alice", leaseDurationSeconds=5), user="alice")
    began = datetime.datetime.now(datetime.UTC)
    while datetime.datetime.now(datetime.UTC) - began < datetime.timedelta(seconds=8):
        assert patch(asset, "alice", renewTime=now()).returncode == 0
    assert asset.write("app", "bob", "theirs").returncode == 1
    assert asset.get("lease", "asset.vm-1")["spec"]["holderIdentity"] == "alice"


def test_a_client_that_never_renews_loses_it_and_another_creates_it(asset: Operated) -> None:
    asset.create(lease("vm-1", "alice", leaseDurationSeconds=2), user="alice")
    asset.wait(LEASE, TOKEN)
    asset.kubectl("wait", LEASE, "--for=delete", "--timeout=15s")
    asset.create(lease("vm-1", "bob"), user="bob")
    asset.wait(LEASE, TOKEN)
    assert asset.get("lease", "asset.vm-1")["metadata"]["annotations"]["assetlock.dev/token"] == "2"
    assert asset.write("app", "bob", "theirs").returncode == 0
    late = patch(asset, "alice", renewTime=now())
    assert late.returncode == 1
    assert "held as 'bob' by bob" in late.stderr, "who could not renew is told who has it now"


@pytest.mark.parametrize(
    "release", [{"holderIdentity": "", "leaseDurationSeconds": 1}, {"holderIdentity": ""}]
)
def test_clearing_the_holder_releases_and_a_waiter_gets_it_in_one_step(
    asset: Operated, release: dict[str, Any]
) -> None:
    asset.create(lease("vm-1", "alice"), user="alice")
    asset.wait(LEASE, TOKEN)
    asset.lock("second", "bob", wait="10m")
    asset.kubectl("wait", "alk/second", "--for=jsonpath={.status.state}=Pending", "--timeout=10s")
    assert patch(asset, "alice", **release).returncode == 0
    asset.wait("alk/second", "condition=Acquired", timeout=5)
    assert asset.get("alk", "second")["status"]["fencingToken"] == 2
    assert asset.write("app", "alice", "hers").returncode == 1


def test_a_lease_that_was_made_free_can_be_taken_by_an_update_again_and_again(asset: Operated) -> None:
    free = lease("vm-1")
    free["spec"] = {}
    made = asset.create(free)
    assert "locks nothing" in made.stderr
    for token, user in enumerate(("alice", "bob", "carol"), start=1):
        taken = patch(asset, user, holderIdentity=user, leaseDurationSeconds=60)
        assert taken.returncode == 0, taken.stderr
        asset.wait(LEASE, f"{TOKEN}={token}")
        assert asset.write("app", user, f"by {user}").returncode == 0
        stranger = patch(asset, "alice" if user == "bob" else "bob", holderIdentity="thief")
        assert stranger.returncode == 1
        assert patch(asset, user, holderIdentity="").returncode == 0
        asset.wait("ast/vm-1", "jsonpath={.status.lockState}=Unlocked")
    until(lambda: asset.unfenced("app"), "the fence comes down beside a free Lease")


def test_an_asset_lock_takes_a_free_lease_and_leaves_it_free(asset: Operated) -> None:
    free = lease("vm-1")
    free["spec"] = {}
    asset.create(free)
    uid = asset.get("lease", "asset.vm-1")["metadata"]["uid"]
    asset.held("first", "bob")
    assert patch(asset, "alice", holderIdentity="alice").returncode == 1
    asset.kubectl("delete", "alk", "first", user="bob")
    asset.wait("ast/vm-1", "jsonpath={.status.lockState}=Unlocked")
    until(lambda: not asset.get("lease", "asset.vm-1")["spec"].get("holderIdentity"), "the Lease is free")
    assert asset.get("lease", "asset.vm-1")["metadata"]["uid"] == uid
    assert patch(asset, "alice", holderIdentity="alice", leaseDurationSeconds=60).returncode == 0
