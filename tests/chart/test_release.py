"""A release's life: installed, tried, upgraded under load, its certificates rotated, uninstalled with locks held."""

from __future__ import annotations

from tests.chart.conftest import NAMESPACE, Release


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
