"""The chart renders for every kind of installation, to what Kubernetes accepts."""

from __future__ import annotations

import pathlib
from typing import Any

import kubernetes_validate
import pytest
import yaml
from charts.tools import helm, values

SCENARIOS = sorted((helm.CHART / "ci").glob("*-values.yaml"))
EVERY = [None, *SCENARIOS]
OTHERS = ("cert-manager.io/", "monitoring.coreos.com/")
"""Kinds that neither Kubernetes nor we define."""


def rendered(
    scenario: pathlib.Path | None, *arguments: str, namespace: str = helm.NAMESPACE
) -> list[dict[str, Any]]:
    text = helm.template(*arguments, values=[scenario] if scenario else [], namespace=namespace)
    return [document for document in yaml.safe_load_all(text) if document]


def newest(count: int) -> list[str]:
    """The newest versions of Kubernetes that there are schemas of."""
    latest = kubernetes_validate.latest_version().split(".")
    return [f"{latest[0]}.{int(latest[1]) - number}" for number in range(count)]


@pytest.mark.parametrize("scenario", EVERY, ids=lambda path: path.stem if path else "defaults")
def test_every_scenario_passes_lint_and_the_schemas_of_three_versions(scenario: pathlib.Path | None) -> None:
    helm.run("lint", "--strict", str(helm.CHART), *([f"--values={scenario}"] if scenario else []))
    documents = rendered(scenario)
    assert {"Deployment", "Service", "CustomResourceDefinition"} <= {one["kind"] for one in documents}
    for document in documents:
        if not document["apiVersion"].startswith(OTHERS):
            for version in newest(3):
                kubernetes_validate.validate(document, version, strict=True)


def test_schema_and_readme_are_what_the_values_say_and_every_value_is_explained() -> None:
    assert not values.outdated(), "run: make manifests"
    assert not values.undocumented()


def test_a_misspelt_value_is_refused() -> None:
    for wrong in (
        "contoller.replicas=3",
        "controller.replica=3",
        "certificates.source=Vault",
        "admission.port=0",
    ):
        with pytest.raises(helm.HelmFailed, match="values don't meet the specifications"):
            helm.template(f"--set={wrong}")


def test_the_policies_follow_the_namespace_and_the_names_of_the_accounts() -> None:
    accounts = ("controller.serviceAccount.name=grants", "admission.serviceAccount.name=refuses")
    text = helm.template(*(f"--set={account}" for account in accounts), namespace="locks")
    assert "assetlock-system" not in text
    assert "system:serviceaccount:locks:grants" in text
    assert "system:serviceaccount:locks:refuses" in text
    assert "system:serviceaccount:locks:assetlock" not in text


def test_what_the_operator_writes_is_not_declared() -> None:
    for document in rendered(None):
        assert document["kind"] != "Secret"
        if document["kind"] == "MutatingWebhookConfiguration":
            assert all("caBundle" not in webhook["clientConfig"] for webhook in document["webhooks"])
            assert all("path" not in webhook["clientConfig"]["service"] for webhook in document["webhooks"])
            [creations] = [one for one in document["webhooks"] if one["name"].startswith("creations.")]
            assert "rules" not in creations


def test_definitions_are_kept_or_left_out_as_the_values_say() -> None:
    def kept(*arguments: str) -> list[str | None]:
        return [
            (document["metadata"].get("annotations") or {}).get("helm.sh/resource-policy")
            for document in rendered(None, *arguments)
            if document["kind"] == "CustomResourceDefinition"
        ]

    assert kept() == ["keep"] * 3
    assert kept("--set=crds.keep=false") == [None] * 3
    assert kept("--set=crds.enabled=false") == []


def test_with_namespaces_named_the_controller_may_write_to_targets_there_alone() -> None:
    [scenario] = [path for path in SCENARIOS if path.name.startswith("namespace-scoped")]
    bindings = [
        (one["kind"], one["metadata"].get("namespace"))
        for one in rendered(scenario)
        if one["kind"].endswith("RoleBinding") and one["metadata"]["name"] == "assetlock-targets"
    ]
    assert sorted(bindings) == [("RoleBinding", "pay"), ("RoleBinding", "shop")]


def test_the_hook_may_take_down_every_policy_and_both_processes() -> None:
    documents = rendered(None)
    [role] = [one for one in documents if one["metadata"]["name"] == "assetlock-uninstall" and "rules" in one]
    may = {name for rule in role["rules"] for name in rule.get("resourceNames", ())}
    kinds = ("ValidatingAdmissionPolicy", "MutatingWebhookConfiguration", "Deployment")
    assert {one["metadata"]["name"] for one in documents if one["kind"] in kinds} == may
