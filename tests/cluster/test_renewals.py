"""AssetLocks are renewed as Leases are: by a time that the client writes, and the server decides."""

from __future__ import annotations

import datetime
import json
from typing import Any

from tests.cluster.conftest import Operated, until


def renew(operated: Operated, name: str, user: str = "alice", time: str = "2099-01-01T00:00:00Z") -> Any:
    patch = json.dumps({"spec": {"renewTime": time}})
    return operated.kubectl("patch", "alk", name, "--type=merge", f"-p={patch}", user=user, check=False)


def test_a_renewal_lasts_another_ttl_by_the_servers_time_whatever_the_client_writes(
    operated: Operated,
) -> None:
    operated.asset("vm-1", "app")
    operated.held("first", ttl="1m")
    before = operated.get("lease", "asset.vm-1")["spec"]["renewTime"]
    assert renew(operated, "first").returncode == 0
    written = datetime.datetime.fromisoformat(operated.get("alk", "first")["spec"]["renewTime"])
    assert abs(written - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(minutes=1)
    until(lambda: operated.get("alk", "first")["status"]["expireTime"] > before, "the lock lasts longer")
    until(
        lambda: operated.get("ast", "vm-1")["status"]["holders"][0]["expireTime"] > before, "all can see it"
    )


def test_renewals_in_quick_succession_cost_one_write(operated: Operated) -> None:
    """On a slow machine two of them may be far apart: then each counts."""
    operated.asset("vm-1")
    operated.held("first", ttl="1h")

    def stored() -> datetime.datetime:
        return datetime.datetime.fromisoformat(operated.get("alk", "first")["spec"]["renewTime"])

    def counts_as_the_last_one() -> bool:
        assert renew(operated, "first").returncode == 0
        last = stored()
        said = renew(operated, "first", time="2098-01-01T00:00:00Z").stdout
        between = stored() - last
        assert (between == datetime.timedelta()) == ("patched (no change)" in said)
        assert between == datetime.timedelta() or between >= datetime.timedelta(seconds=10)
        return between == datetime.timedelta()

    until(counts_as_the_last_one, "two renewals in quick succession", seconds=120)


def test_a_lock_that_has_ended_is_not_renewed_and_says_how_it_ended(operated: Operated) -> None:
    operated.asset("vm-1")
    operated.held("first", ttl="1s")
    operated.wait("alk/first", "jsonpath={.status.state}=Expired")
    refused = renew(operated, "first")
    assert refused.returncode == 1
    assert "AssetLock first has ended: Expired, not renewed by" in refused.stderr
    assert "create another" in refused.stderr


def test_only_its_holder_renews_a_lock(operated: Operated) -> None:
    operated.asset("vm-1")
    operated.held("first")
    refused = renew(operated, "first", "bob")
    assert refused.returncode == 1
    assert "belongs to alice" in refused.stderr


def test_a_lock_over_several_assets_is_renewed_on_all_of_them(operated: Operated) -> None:
    for name in ("a", "b"):
        operated.asset(name)
    operated.create(
        {
            "apiVersion": "assetlock.dev/v1alpha1",
            "kind": "AssetLock",
            "metadata": {"name": "both"},
            "spec": {"assetNames": ["a", "b"], "ttl": "1m"},
        },
        user="alice",
    )
    operated.wait("alk/both", "condition=Acquired")
    terms = {name: operated.get("lease", f"asset.{name}")["spec"]["renewTime"] for name in ("a", "b")}
    renew(operated, "both")
    until(lambda: operated.get("lease", "asset.a")["spec"]["renewTime"] > terms["a"], "the term begins again")

    def ends() -> set[str]:
        """Until when the lock and its assets say that it is held."""
        holders = [operated.get("ast", name)["status"]["holders"][0] for name in ("a", "b")]
        return {operated.get("alk", "both")["status"]["expireTime"], *(h["expireTime"] for h in holders)}

    until(lambda: len(ends()) == 1, "all say the same")
