"""Something keeps the operator from taking a stamp off. The ended lock stands against nobody, and favours nobody."""

from __future__ import annotations

import json
from typing import Any

from assetlock.cli.stack import Part
from assetlock.core import names
from tests.adversary.conftest import Shop
from tests.cluster.conftest import until

DEMANDS_A_TEAM = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [configmaps]}]
  validations: [{expression: "'team' in object.metadata.?labels.orValue({})", message: needs a team}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
"""


def another_team_demands_a_label(shop: Shop) -> None:
    shop.cluster.kubectl("apply", "-f", "-", stdin=DEMANDS_A_TEAM.replace("NAME", shop.namespace))
    dry = ("annotate", "cm/app", "a=b", "--overwrite", "--dry-run=server")
    until(lambda: "needs a team" in shop.tries("alice", *dry).stderr, "the policy is in force")


def released(shop: Shop, lock: str = "work") -> None:
    shop.kubectl("delete", "alk", lock, user="alice")
    until(lambda: "can't be taken off" in fenced(shop), "the asset says what is in the way")


def fenced(shop: Shop) -> str:
    conditions: list[dict[str, Any]] = shop.get("asset", "vm")["status"]["conditions"]
    return next(f"{c['status']} {c['message']}" for c in conditions if c["type"] == "Fenced")


def notes(shop: Shop) -> list[str]:
    policy = shop.cluster.kubectl(
        "get", "validatingadmissionpolicy", names.TARGETS_POLICY, "-o", "json"
    ).stdout
    return [
        key for key in json.loads(policy)["metadata"].get("annotations", {}) if f"vm.{shop.namespace}." in key
    ]


def test_who_would_mend_it_may_and_the_former_holder_may_no_more_than_others(locked: Shop) -> None:
    another_team_demands_a_label(locked)
    released(locked)
    assert "False" in fenced(locked)
    assert "needs a team" in fenced(locked)
    for user in ("alice", "eddie"):
        assert "needs a team" in locked.refused(user, "annotate", "cm/app", "a=b")
    locked.does("eddie", "label", "cm/app", "team=x")
    until(lambda: not locked.stamps("cm/app") and not notes(locked), "stamp and note are gone", seconds=60)
    # What could not be stamped is tried again in a while: see RECHECK in controller/targets/problems.py.
    locked.lock("next", "mallory", asset="vm", ttl="1h", wait="2m")
    locked.wait("alk/next", "condition=Acquired", timeout=60)
    assert "is locked through" in locked.refused("alice", "annotate", "cm/app", "a=c")


def test_the_policy_alone_knows_it_too(locked: Shop) -> None:
    another_team_demands_a_label(locked)
    released(locked)
    locked.stack.kill(Part.ADMISSION)
    try:
        locked.does("eddie", "label", "cm/app", "team=x")
        locked.does("eddie", "annotate", "cm/app", "a=b")
    finally:
        locked.stack.restart(Part.ADMISSION)


def test_a_holder_may_give_a_role_rights_that_the_operator_lacks(shop: Shop) -> None:
    """RBAC lets nobody touch a Role who lacks its rights, its metadata either."""
    shop.kubectl("create", "role", "viewer", "--verb=get", "--resource=configmaps")
    shop.stands_for("roles", ("rbac.authorization.k8s.io/v1", "Role", "viewer"))
    shop.held("work", "root", asset="roles", ttl="1h")
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "delete"]}
    assert shop.patched("root", "role/viewer", {"rules": [rule]})
    shop.kubectl("delete", "alk", "work", user="root")
    patch = json.dumps({"rules": [{**rule, "verbs": ["get"]}]})
    command = ("patch", "role/viewer", "-n", shop.namespace, "--type=merge", f"--patch={patch}")
    masters: dict[str, Any] = {"user": "janitor", "groups": ("system:masters",), "check": False}
    until(
        lambda: shop.cluster.kubectl(*command, **masters).returncode == 0,
        "anybody with the right may write it",
    )
    until(lambda: not shop.stamps("role/viewer"), "the stamp is gone", seconds=60)


def test_a_note_is_nobody_elses_to_make(locked: Shop) -> None:
    """Whoever may change the policy could as well delete it: that is root, and nobody with ordinary rights."""
    meta = locked.metadata("cm/app")
    key = names.ended_key(names.stamp_key("vm", locked.namespace), meta["uid"])
    for user in ("eddie", "mallory", "alice"):
        note = f"{key}={locked.stamps('cm/app')['vm']}"
        command = ("annotate", "validatingadmissionpolicy", names.TARGETS_POLICY, note)
        assert "forbidden" in locked.cluster.kubectl(*command, user=user, check=False).stderr
