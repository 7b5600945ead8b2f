"""The manifests: well-formed, complete, and in an order that can be applied."""

from __future__ import annotations

import copy
from typing import Any

import kubernetes_validate
import pytest

from assetlock.core import names
from assetlock.install import located, manifests

ALL = list(manifests("manifests"))
OLDEST = "1.31"


@pytest.mark.parametrize("manifest", ALL, ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_every_manifest_is_what_kubernetes_expects(manifest: dict[str, Any]) -> None:
    for version in (OLDEST, kubernetes_validate.latest_version()):
        kubernetes_validate.validate(manifest, version, strict=True)


def test_namespaces_and_rights_come_before_webhooks() -> None:
    kinds = [manifest["kind"] for manifest in ALL]
    assert kinds[0] == "Namespace"
    assert kinds[-1] == "MutatingWebhookConfiguration"


WARNS_ONLY = "assetlock-ended"
BINDINGS = "assetlock-bindings"
"""Looks only for our keys in what a scheduler writes; the operator binds nothing."""


def test_every_policy_is_bound_and_denies_but_for_the_one_that_warns() -> None:
    bound = {
        manifest["spec"]["policyName"]: manifest["spec"]["validationActions"]
        for manifest in ALL
        if manifest["kind"] == "ValidatingAdmissionPolicyBinding"
    }
    policies = [m["metadata"]["name"] for m in ALL if m["kind"] == "ValidatingAdmissionPolicy"]
    assert bound == {policy: ["Warn" if policy == WARNS_ONLY else "Deny"] for policy in policies}


def test_the_operator_and_break_glass_pass_every_policy_that_denies() -> None:
    policies = [m for m in ALL if m["kind"] == "ValidatingAdmissionPolicy"]
    for policy in (m for m in policies if m["metadata"]["name"] != WARNS_ONLY):
        conditions = " ".join(item["expression"] for item in policy["spec"]["matchConditions"])
        assert names.CONTROLLER_USER in conditions or policy["metadata"]["name"] == BINDINGS
        assert names.BREAK_GLASS_GROUP in conditions


def test_only_webhooks_on_our_own_group_fail_closed() -> None:
    for webhook in _webhooks(ALL[-1]):
        if webhook["failurePolicy"] == "Fail":
            assert {group for rule in webhook["rules"] for group in rule["apiGroups"]} == {names.GROUP}
            assert {verb for rule in webhook["rules"] for verb in rule["operations"]} <= {"CREATE", "UPDATE"}


def test_no_webhook_matches_an_unlabelled_object_of_others_outside_guarded_namespaces() -> None:
    guarded = {names.GUARDED_LABEL: "true"}
    for webhook in _webhooks(ALL[-1]):
        groups = {group for rule in webhook.get("rules", []) for group in rule["apiGroups"]}
        is_guarded = webhook["namespaceSelector"].get("matchLabels") == guarded
        ends_kinds = groups == {"apiextensions.k8s.io"}
        assert groups == {names.GROUP} or webhook["objectSelector"] or is_guarded or ends_kinds


def test_nothing_in_kube_system_meets_what_is_matched_by_namespace() -> None:
    matching = [m["spec"]["matchConstraints"] for m in ALL if m["kind"] == "ValidatingAdmissionPolicy"]
    for one in (*matching, *_webhooks(ALL[-1])):
        selector = one.get("namespaceSelector") or {}
        for expression in selector.get("matchExpressions", []) if "matchLabels" in selector else []:
            assert (expression["operator"], expression["values"]) == ("NotIn", ["kube-system"])
            break
        else:
            assert "matchLabels" not in selector


def test_only_the_policy_that_looks_for_our_keys_ever_sees_a_binding() -> None:
    rules = {webhook["name"]: webhook.get("rules", []) for webhook in _webhooks(ALL[-1])}
    for policy in (m for m in ALL if m["kind"] == "ValidatingAdmissionPolicy"):
        rules[policy["metadata"]["name"]] = policy["spec"]["matchConstraints"]["resourceRules"]
    bindings = {"pods/binding", "bindings", "*/*", "pods/*", "*/binding"}
    seeing = {
        name
        for name, matched in rules.items()
        for rule in matched
        if {"CREATE", "*"} & set(rule["operations"]) and bindings & set(rule["resources"])
    }
    assert seeing == {BINDINGS}


def test_a_url_takes_the_place_of_the_service() -> None:
    configuration = copy.deepcopy(ALL[-1])
    located(configuration, "https://127.0.0.1:9443/", "PEM")
    urls = {webhook["clientConfig"]["url"] for webhook in _webhooks(configuration)}
    paths = ("fence", "subresources", "namespaces", "creations", "definitions")
    paths += ("assets", "assetlocks", "leases", "windows")
    assert urls == {f"https://127.0.0.1:9443/{path}" for path in paths}
    assert all("service" not in webhook["clientConfig"] for webhook in _webhooks(configuration))
    assert all(webhook["clientConfig"]["caBundle"] == "UEVN" for webhook in _webhooks(configuration))


def _webhooks(configuration: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = configuration["webhooks"]
    return found
