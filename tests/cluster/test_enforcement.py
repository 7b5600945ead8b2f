"""What can't be fenced is never reported as fenced, and says why; in a cluster whose policies may be taken away."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster import aggregated
from tests.cluster.conftest import Operated, document, operator_in_a_cluster, until

from assetlock.cli import stack as operator_stack
from assetlock.core import names
from assetlock.dev import ControlPlane

BINDING = ("validatingadmissionpolicybinding", names.TARGETS_POLICY)


@pytest.fixture(scope="module")
def operator_cluster() -> Iterator[tuple[ControlPlane, operator_stack.Stack]]:
    with operator_in_a_cluster() as running:
        yield running


def condition(operated: Operated, kind: str = "Fenced") -> dict[str, Any]:
    conditions = operated.get("ast", "vm-1").get("status", {}).get("conditions", [])
    found: dict[str, Any] = next((c for c in conditions if c["type"] == kind), {})
    return found


def stand_for(operated: Operated, api_version: str, kind: str, name: str, **spec: Any) -> None:
    target = {"apiVersion": api_version, "kind": kind, "name": name}
    operated.create(document("Asset", "vm-1", {"targets": [target], **spec}))


def refused_as_unfenceable(operated: Operated, name: str = "first") -> str:
    """A lock that is not granted because of a target; gives the reason."""
    operated.lock(name)
    settled = operated.settled(name)
    assert settled["reason"] == "NotFenceable", settled
    return str(settled["message"])


def test_without_its_binding_no_new_lock_is_announced_until_it_is_back(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    until(lambda: condition(operated).get("status") == "True", "the fence is proven")
    saved = operated.cluster.kubectl("get", *BINDING, "-o", "yaml").stdout
    operated.cluster.kubectl("delete", *BINDING)
    until(lambda: condition(operated)["status"] == "False", "the loss is noticed")
    assert "the ValidatingAdmissionPolicyBinding assetlock-targets is missing" in refused_as_unfenceable(
        operated
    )
    operated.lock("second", wait="1m")
    operated.cluster.kubectl("create", "-f", "-", stdin=saved)
    operated.wait("alk/second", "condition=Acquired", timeout=30)
    assert condition(operated)["status"] == "True"
    assert operated.write("app", "bob").returncode == 1


def test_without_the_policy_on_subresources_nothing_that_has_them_is_reported_as_fenced(
    operated: Operated,
) -> None:
    operated.kubectl("create", "deployment", "web", "--image=web")
    stand_for(operated, "apps/v1", "Deployment", "web")
    operated.asset("vm-2", "plain")
    until(lambda: condition(operated).get("status") == "True", "the fence is proven")
    binding = (BINDING[0], names.SUBRESOURCES_POLICY)
    saved = operated.cluster.kubectl("get", *binding, "-o", "yaml").stdout
    operated.cluster.kubectl("delete", *binding)
    until(lambda: condition(operated)["status"] == "False", "the loss is noticed")
    assert (
        "the ValidatingAdmissionPolicyBinding assetlock-subresources is missing, without which scaling, eviction "
        "and exec are open to everybody" in refused_as_unfenceable(operated)
    )
    operated.held("of-the-other", asset="vm-2")
    operated.lock("second", wait="1m")
    operated.cluster.kubectl("create", "-f", "-", stdin=saved)
    operated.wait("alk/second", "condition=Acquired", timeout=30)


def test_a_binding_that_only_audits_is_found_out_by_the_trial(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    audit = json.dumps({"spec": {"validationActions": ["Audit"]}})
    deny = json.dumps({"spec": {"validationActions": ["Deny"]}})
    operated.cluster.kubectl("patch", *BINDING, "--type=merge", f"--patch={audit}")
    try:
        until(lambda: condition(operated).get("status") == "False", "the trial goes through")
        assert "let a trial write (a dry run) through" in refused_as_unfenceable(operated)
    finally:
        operated.cluster.kubectl("patch", *BINDING, "--type=merge", f"--patch={deny}")
    until(lambda: condition(operated)["status"] == "True", "the trial is refused again", seconds=30)


@pytest.mark.parametrize(
    ("api_version", "kind", "name"),
    [
        ("coordination.k8s.io/v1", "Lease", "heartbeat"),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", names.TARGETS_POLICY),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", names.TARGETS_POLICY),
        ("assetlock.dev/v1alpha1", "Asset", "vm-1"),
    ],
    ids=lambda value: value,
)
def test_kinds_that_never_meet_the_policy_are_not_reported_as_fenced(
    operated: Operated, api_version: str, kind: str, name: str
) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "heartbeat"}}
    operated.create(lease)
    stand_for(operated, api_version, kind, name)
    assert f"{kind} objects in" in refused_as_unfenceable(operated)
    assert condition(operated)["reason"] == "NotFenceable"
    assert condition(operated, "Ready")["status"] == "False"


def test_what_another_api_server_has_is_neither_fenced_nor_touched(
    operated: Operated, tmp_path: pathlib.Path
) -> None:
    with aggregated.served(operated.cluster, tmp_path) as writes:
        stand_for(operated, f"{aggregated.GROUP}/v1", "Thing", "thing")
        assert f"served by another API server (APIService {aggregated.SERVICE})" in refused_as_unfenceable(
            operated
        )
        assert writes == []
        operated.kubectl("delete", "ast", "vm-1")


def test_where_advice_is_enough_a_lock_is_had_and_said_to_be_advice(operated: Operated) -> None:
    stand_for(operated, "assetlock.dev/v1alpha1", "Asset", "vm-1", enforcement="Advisory")
    operated.held("first")
    assert condition(operated)["reason"] == "NotFenceable"
    assert condition(operated, "Ready")["status"] == "True"
    assert operated.get("ast", "vm-1")["status"]["fencedTargets"] == 0


def test_one_target_without_room_for_the_stamp_leaves_nothing_half_done(operated: Operated) -> None:
    operated.asset("vm-1", "app", "full")
    for number in range(2):
        filler = json.dumps({"metadata": {"annotations": {f"filler-{number}": "x" * 131_055}}})
        operated.kubectl(
            "patch", "configmap", "full", "--type=merge", "--patch-file=/dev/stdin", stdin=filler
        )
    annotations = operated.get("configmap", "full")["metadata"]["annotations"]
    assert sum(len(key) + len(value) for key, value in annotations.items()) == 262_126
    assert "ConfigMap full can't be stamped" in refused_as_unfenceable(operated)
    operated.kubectl("wait", "lease/asset.vm-1", "--for=delete", "--timeout=15s")
    until(lambda: operated.unfenced("app"), "nothing is left on the other target")
    assert operated.get("ast", "vm-1")["status"]["holders"] == []


def test_a_target_that_another_policy_keeps_from_us_is_not_reported_as_fenced(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": operated.namespace},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": operated.namespace}},
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["*"],
                        "operations": ["UPDATE"],
                        "resources": ["configmaps"],
                    }
                ],
            },
            "validations": [{"expression": "false", "message": "frozen by the security team"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": operated.namespace},
        "spec": {"policyName": operated.namespace, "validationActions": ["Deny"]},
    }
    operated.create(policy, binding)
    until(lambda: "frozen" in operated.write("app", "bob").stderr, "the other policy is in force")
    assert "frozen by the security team" in refused_as_unfenceable(operated)
    operated.cluster.kubectl("delete", "validatingadmissionpolicy,validatingadmissionpolicybinding",
                             operated.namespace)  # fmt: skip


def planted(operated: Operated, uid: str) -> dict[str, str]:
    """A stamp for mallory, as if another asset had claimed the object."""
    return {names.stamp_key("evil", operated.namespace): f"{uid}\n99 - mallory"}


def annotate(operated: Operated, name: str, annotations: dict[str, str], user: str = "bob") -> Any:
    patch = json.dumps({"metadata": {"annotations": annotations}})
    return operated.kubectl(
        "patch", "configmap", name, "--type=merge", f"--patch={patch}", user=user, check=False
    )


def test_a_stamp_planted_before_the_lock_does_not_shut_the_holder_out(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    uid = operated.get("configmap", "app")["metadata"]["uid"]
    assert annotate(operated, "app", planted(operated, uid)).returncode == 0
    operated.held("first", "alice")
    assert operated.write("app", "alice").returncode == 0
    assert operated.write("app", "bob", "2").returncode == 1
    assert names.stamp_key("evil", operated.namespace) not in operated.get("configmap", "app")[
        "metadata"
    ].get("annotations", {})


def test_a_planted_stamp_is_taken_off_when_somebody_puts_the_label_on(operated: Operated) -> None:
    operated.kubectl("create", "configmap", "free")
    uid = operated.get("configmap", "free")["metadata"]["uid"]
    assert annotate(operated, "free", planted(operated, uid)).returncode == 0
    operated.kubectl("label", "configmap", "free", f"{names.FENCED_LABEL}=true", user="bob")
    assert "annotations" not in operated.get("configmap", "free")["metadata"]
    assert operated.write("free", "carol").returncode == 0


def test_an_object_made_with_label_and_stamp_is_nobodys(operated: Operated) -> None:
    guess = "00000000-0000-0000-0000-000000000000"
    metadata = {
        "name": "made",
        "labels": {names.FENCED_LABEL: "true"},
        "annotations": planted(operated, guess),
    }
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": "0"}}
    operated.create(made, user="bob")
    assert operated.write("made", "carol").returncode == 0
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "made"}
    operated.create(document("Asset", "vm-1", {"targets": [target]}))
    operated.held("first", "alice")
    assert operated.write("made", "alice").returncode == 0
    assert operated.write("made", "carol", "2").returncode == 1
