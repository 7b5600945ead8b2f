"""Locks over several assets on a real API server: all of them or none."""

from __future__ import annotations

from typing import Any

from tests.cluster.conftest import Operated, document, until


def ask(operated: Operated, name: str, *assets: str, user: str = "alice", **spec: Any) -> Any:
    return operated.create(
        document("AssetLock", name, {"assetNames": list(assets), **spec}), user=user, check=False
    )


def leases(operated: Operated) -> list[str]:
    return str(operated.kubectl("get", "leases", "-o", "name").stdout).split()


def test_all_are_held_fenced_and_released_together(operated: Operated) -> None:
    operated.asset("db", "tables")
    operated.asset("web", "pages")
    ask(operated, "release", "web", "db")
    operated.wait("alk/release", "condition=Acquired")
    status = operated.get("alk", "release")["status"]
    assert status["assets"] == [{"name": "db", "fencingToken": 1}, {"name": "web", "fencingToken": 1}]
    for target in ("tables", "pages"):
        assert operated.write(target, "alice").returncode == 0
        assert "held by alice" in operated.write(target, "bob", "2").stderr
    shown = operated.kubectl("get", "alk", "release").stdout
    assert "db, web" in shown
    operated.kubectl("delete", "alk", "release", user="alice")
    until(lambda: not leases(operated), "no Lease is left")
    until(lambda: operated.unfenced("tables") and operated.unfenced("pages"), "no stamp is left")
    assert operated.write("pages", "bob", "3").returncode == 0


def test_one_that_waits_has_nothing_and_says_for_what_until_it_has_all(operated: Operated) -> None:
    operated.asset("db")
    operated.asset("web")
    operated.held("patch", "bob", asset="web")
    # Of two that came within one second the UID says who is first.
    ask(operated, "release", "db", "web", wait="5m", priority=1)
    until(lambda: operated.get("alk", "release").get("status", {}).get("state") == "Pending", "it waits")
    assert operated.condition("release")["message"].startswith("asset web: held by bob (patch)")
    assert operated.get("alk", "release")["status"]["waitsFor"] == "bob (patch)"
    assert leases(operated) == ["lease.coordination.k8s.io/asset.web"]
    operated.lock("behind", "carol", asset="db")
    assert operated.settled("behind")["message"].startswith("alice (release) comes first")
    operated.kubectl("delete", "alk", "patch", user="bob")
    operated.wait("alk/release", "condition=Acquired")


def test_an_asset_that_does_not_exist_is_named(operated: Operated) -> None:
    operated.asset("db")
    ask(operated, "release", "db", "nowhere")
    assert operated.settled("release")["reason"] == "AssetNotFound"
    assert "no asset 'nowhere'" in operated.condition("release")["message"]
    ask(operated, "patient", "db", "nowhere", wait="5m")
    until(lambda: operated.get("alk", "patient").get("status", {}).get("queuePosition") == 1, "it waits")
    operated.held("meanwhile", "bob", asset="db")


def test_any_of_a_pool_are_held_and_a_new_label_counts_for_who_waits(operated: Operated) -> None:
    for asset, target in (("one", "a"), ("two", "b"), ("three", "c")):
        operated.asset(asset, target)
    operated.kubectl("label", "asset", "one", "pool=x")
    selecting = {"assetSelector": {"matchLabels": {"pool": "x"}}, "count": 2}
    operated.create(document("AssetLock", "at-once", selecting), user="alice")
    assert operated.settled("at-once")["reason"] == "TooFewAssets"
    operated.create(document("AssetLock", "patient", {**selecting, "wait": "5m"}), user="alice")
    until(lambda: operated.get("alk", "patient").get("status", {}).get("queuePosition") == 1, "it waits")
    operated.kubectl("label", "asset", "three", "pool=x")
    operated.wait("alk/patient", "condition=Acquired")
    assert "one, three" in operated.kubectl("get", "alk", "patient").stdout
    names = ["get", "alk", "patient", "-o", "jsonpath={.status.assets[*].name}"]
    assert operated.kubectl(*names, user="alice").stdout == "one three"
    assert operated.write("c", "alice").returncode == 0
    assert "held by alice" in operated.write("c", "bob", "2").stderr
    assert operated.write("b", "bob", "2").returncode == 0


def test_of_two_who_wait_for_each_other_one_fails_and_is_told_of_the_ring(operated: Operated) -> None:
    operated.asset("db")
    operated.asset("web")
    operated.held("a1", "alice", asset="db")
    operated.held("b1", "bob", asset="web")
    operated.lock("a2", "alice", asset="web", wait="5m")
    operated.lock("b2", "bob", asset="db", wait="5m")
    locks = {"a2": "b1", "b2": "a1"}

    def failed() -> list[str]:
        return [
            name for name in locks if operated.get("alk", name).get("status", {}).get("state") == "Failed"
        ]

    until(lambda: bool(failed()), "one gives way")
    [victim] = failed()
    settled = operated.condition(victim)
    assert settled["reason"] == "Deadlock"
    assert "bob (b2) waits for asset db, which alice (a1) has" in settled["message"]
    operated.kubectl("delete", "alk", locks["b2" if victim == "a2" else "a2"])
    operated.wait(f"alk/{'b2' if victim == 'a2' else 'a2'}", "condition=Acquired")


def test_every_asset_needs_the_verb(operated: Operated) -> None:
    operated.asset("db")
    operated.asset("web")
    names = [f"vm-{number}" for number in range(11)]
    operated.kubectl(
        "create", "role", "some", "--verb=lock", "--resource=assets.assetlock.dev", "--resource-name=db",
        *(f"--resource-name={name}" for name in names),
    )  # fmt: skip
    operated.kubectl("create", "role", "asker", "--verb=create,get", "--resource=assetlocks.assetlock.dev")
    for role in ("some", "asker"):
        operated.kubectl("create", "rolebinding", role, f"--role={role}", "--user=dora")
    assert ask(operated, "one", "db", user="dora").returncode == 0
    assert ask(operated, "ten", *names[:10], user="dora").returncode == 0
    refused = ask(operated, "both", "db", "web", user="dora")
    assert "dora may not lock assets db, web in namespace" in refused.stderr
    any_of_them = {"assetSelector": {"matchLabels": {"pool": "x"}}}
    refused = operated.create(document("AssetLock", "any", any_of_them), user="dora", check=False)
    assert "dora may not lock assets by their labels" in refused.stderr
    many = ask(operated, "many", *names, user="dora").stderr
    assert "dora may not lock assets vm-0" in many and "on all of the namespace" in many
