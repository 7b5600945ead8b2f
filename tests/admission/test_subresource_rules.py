"""Scaling, eviction and looking inside: decided by what is written on the namespace."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from assetlock.admission.review import Review
from assetlock.admission.rules import subresources as subresource_rules
from assetlock.admission.rules import targets as target_rules
from assetlock.core import names
from tests.admission.reviews import review, user

NOW = datetime.datetime(2026, 3, 28, 12, 0, tzinfo=datetime.UTC)
KEY = names.namespace_fence_key("vm", "shop")
GUARD = {KEY: "deployments.apps/web\npods/db-0 exec\n7 - alice\n0 - autoscaler"}


def scale(by: str, *, replicas: int = 5, name: str = "web", groups: tuple[str, ...] = ()) -> Review:
    old = {"metadata": {"name": name, "namespace": "shop"}, "spec": {"replicas": 2}}
    return review(
        "UPDATE",
        by=user(by, *groups),
        new={**old, "spec": {"replicas": replicas}},
        old=old,
        kind="Scale",
        subresource="scale",
        resource="deployments",
        group="apps",
        name=name,
    )


def evict(by: str, name: str = "db-0") -> Review:
    new = {"metadata": {"name": name, "namespace": "shop"}}
    parts: dict[str, Any] = {"kind": "Eviction", "subresource": "eviction", "resource": "pods", "name": name}
    return review("CREATE", by=user(by), new=new, **parts)


def connect(by: str, subresource: str) -> Review:
    options = {"kind": "PodExecOptions", "command": ["sh"]}
    return review("CONNECT", by=user(by), new=options, subresource=subresource, resource="pods", name="db-0")


def admitted(asked: Review, annotations: dict[str, str] = GUARD) -> bool:
    return subresource_rules.admits(asked, subresource_rules.claims_on(asked, annotations))


@pytest.mark.parametrize("asked", [scale("bob"), evict("bob"), connect("bob", "exec")])
def test_a_stranger_is_kept_out(asked: Review) -> None:
    assert not admitted(asked)


@pytest.mark.parametrize("asked", [scale("alice"), evict("alice"), connect("alice", "exec")])
def test_the_holder_is_let_in(asked: Review) -> None:
    assert admitted(asked)


@pytest.mark.parametrize(
    "asked", [scale("bob", name="free"), evict("bob", "db-01"), evict("bob", "web"), connect("bob", "attach")]
)
def test_what_no_line_closes_is_open(asked: Review) -> None:
    assert admitted(asked)


def test_who_is_exempt_may_scale_but_neither_evict_nor_look_inside() -> None:
    assert admitted(scale("autoscaler"))
    assert not admitted(evict("autoscaler"))
    assert not admitted(connect("autoscaler", "exec"))


def test_scaling_to_what_it_is_already_changes_nothing() -> None:
    assert admitted(scale("bob", replicas=2))


def test_the_controllers_of_kubernetes_are_no_exception() -> None:
    assert not admitted(scale("system:serviceaccount:kube-system:deployment-controller"))


def test_breaking_the_glass_lets_everything_through() -> None:
    assert admitted(scale("bob", groups=(names.BREAK_GLASS_GROUP,)))


def test_every_asset_that_closes_it_must_name_the_requester() -> None:
    both = {**GUARD, names.namespace_fence_key("db", "shop"): "deployments.apps/web\n3 - bob"}
    assert not admitted(scale("alice"), both)
    assert not admitted(scale("bob"), both)


def test_a_guard_that_can_not_be_read_is_left_to_the_policy() -> None:
    assert admitted(scale("bob"), {KEY: "x"})


def test_an_eviction_is_refused_so_that_a_drain_tries_again_and_says_so() -> None:
    asked = evict("bob")
    refused = subresource_rules.refused(asked, subresource_rules.claims_on(asked, GUARD), {}, NOW)
    assert (refused.code, refused.reason, refused.retry_after) == (429, "TooManyRequests", None)
    assert "eviction of pods db-0 in namespace shop is locked through asset vm" in refused.message


def test_everything_else_is_refused_as_locked() -> None:
    asked = connect("bob", "exec")
    refused = subresource_rules.refused(asked, subresource_rules.claims_on(asked, GUARD), {}, NOW)
    assert (refused.code, refused.reason) == (423, "Locked")
    assert "exec of pods db-0 in namespace shop" in refused.message


def test_a_claim_by_guard_is_that_of_the_same_asset_by_stamp() -> None:
    [claim] = subresource_rules.claims_on(scale("bob"), GUARD)
    assert (claim.namespace, claim.asset) == ("shop", "vm")
    assert target_rules.holds(scale("alice"), [claim])
