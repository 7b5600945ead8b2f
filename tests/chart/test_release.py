"""A release's life: installed, tried, upgraded under load, its certificates rotated, uninstalled with locks held."""

from __future__ import annotations

import base64
import concurrent.futures
import datetime
import json
from typing import Any

from tests.chart.conftest import NAMESPACE, Release
from tests.cluster.conftest import document, until

from assetlock.admission.upkeep import certificates
from assetlock.admission.upkeep.tls import CONFIGURATION, SECRET, own_names


def test_the_release_locks_what_somebody_locks_and_the_webhooks_are_reached_through_the_service(
    release: Release,
) -> None:
    shop = release.shop
    shop.asset("vm-1", "app")
    shop.held("first")
    refused = shop.write("app", "bob")
    assert "(Locked)" in refused.stderr, "the webhook answers before the policy does"
    assert "held by alice" in refused.stderr
    shop.kubectl("delete", "assetlock", "first", user="alice")


def test_helm_test_passes(release: Release) -> None:
    assert "Phase:          Succeeded" in release.helm("test", "assetlock", "--logs=false")
    left = release.cluster.kubectl(
        "get", "assets,assetlocks,configmaps", f"--namespace={NAMESPACE}", "--output=name"
    )
    assert "verify-" not in left.stdout


def test_upgrades_leave_alone_what_the_operator_wrote_before_and_after_a_rotation(release: Release) -> None:
    first = trusted(release)
    assert first == secret(release, "ca.crt"), "the operator had its CA trusted"
    release.upgrade("--set=rbac.aggregate=false")
    assert trusted(release) == first
    rotate(release)
    until(lambda: trusted(release) != first, "the operator has the next CA trusted", seconds=60)
    second = trusted(release)
    assert second == secret(release, "ca.crt")
    release.upgrade("--set=rbac.aggregate=true")
    assert trusted(release) == second
    creations = webhooks(release)["creations.assetlock.dev"]
    assert creations["rules"], "which kinds are targets is written by the operator too"
    release.shop.asset("vm-2", "other")
    assert release.shop.held("second", asset="vm-2")["spec"]["holder"]["username"] == "alice"
    release.shop.kubectl("delete", "assetlock", "second", user="alice")


def test_an_upgrade_under_load_loses_no_request_and_no_lock(release: Release) -> None:
    shop = release.shop
    shop.asset("vm-3", "kept")
    held = shop.held("third", asset="vm-3")
    failures: list[str] = []
    written = 0
    before = running(release)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        parts = ("controller", "admission", "http")
        upgrade = threads.submit(
            release.upgrade, *(f"--set={part}.podAnnotations.upgraded=yes" for part in parts)
        )
        while not upgrade.done() or written < 10:
            written += 1
            failures += attempt(release, written)
        upgrade.result()
    assert not failures, failures[0]
    until(lambda: not before & running(release), "every pod is a new one", seconds=60)
    assert not release.node.failures
    after = shop.get("alk", "third")
    assert after["status"]["state"] == "Held"
    assert after["status"]["fencingToken"] == held["status"]["fencingToken"]
    assert "held by alice" in shop.write("kept", "bob").stderr
    shop.kubectl("delete", "assetlock", "third", user="alice")


def test_uninstalling_with_locks_held_leaves_nothing_that_blocks(release: Release) -> None:
    shop, cluster = release.shop, release.cluster
    shop.asset("vm-4", "locked")
    shop.held("fourth", asset="vm-4")
    assert 'release "assetlock" uninstalled' in release.helm(
        "uninstall", "assetlock", "--wait", "--timeout=120s"
    )
    assert shop.unfenced("locked")
    assert shop.write("locked", "bob").returncode == 0
    assert shop.get("asset", "vm-4")["status"]["lockState"] == "Unlocked", "assets are kept"
    ours = "mutatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings"
    assert "assetlock" not in cluster.kubectl("get", ours, "--output=name").stdout
    roles = cluster.kubectl("get", "clusterroles,clusterrolebindings", "--output=name").stdout
    assert "assetlock" not in roles
    cluster.kubectl("delete", "namespace", NAMESPACE, "--timeout=60s")


def running(release: Release) -> set[str]:
    return {one.name for one in list(release.node.containers.values())}


def attempt(release: Release, number: int) -> list[str]:
    """What fails of a lock that comes and goes, which the webhooks must answer, and of a holder's write."""
    lock = document("AssetLock", f"n-{number}", {"assetName": "vm-3", "wait": "1h"})
    done = [
        release.shop.create(lock, user="carol", check=False),
        release.shop.kubectl("delete", "assetlock", f"n-{number}", user="carol", check=False),
        release.shop.write("kept", "alice", value=str(number)),
    ]
    return [one.stderr for one in done if one.returncode != 0]


def rotate(release: Release) -> None:
    """Make the operator's CA due, as a year before its end."""
    now = datetime.datetime.now(datetime.UTC)
    old = certificates.issue(own_names(NAMESPACE), now - certificates.CA_LIFE + datetime.timedelta(days=30))
    parts = {"ca.crt": old.trusted, "ca.key": old.ca_key, "tls.crt": old.certificate, "tls.key": old.key}
    patch = json.dumps({"stringData": parts})
    where = f"--namespace={NAMESPACE}"
    release.cluster.kubectl("patch", "secret", SECRET, where, "--type=merge", f"--patch={patch}")


def secret(release: Release, key: str) -> str:
    return base64.b64decode(release.get("secret", SECRET)["data"][key]).decode()


def trusted(release: Release) -> str:
    """Whom the API server trusts, the same for each webhook."""
    [bundle] = {webhook["clientConfig"]["caBundle"] for webhook in webhooks(release).values()}
    return base64.b64decode(bundle).decode()


def webhooks(release: Release) -> dict[str, dict[str, Any]]:
    found = release.get("mutatingwebhookconfiguration", CONFIGURATION)["webhooks"]
    return {webhook["name"]: webhook for webhook in found}
