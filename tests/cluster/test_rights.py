"""Who may do what, with the roles that are installed: every user tries everything, on real RBAC."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.cluster.conftest import Operated, document, lease, until

ROLES = ("reader", "user", "maintainer", "admin")
DRY = ("--dry-run=server",)
FREEZE = {"start": "2099-01-01T00:00:00Z", "end": "2099-01-02T00:00:00Z", "assetNames": ["vm-1"]}

Action = Callable[[Operated, str], Any]


@pytest.fixture
def staffed(operated: Operated) -> Operated:
    """An asset, locked by alice, and a user for each role, called as it is."""
    operated.asset("vm-1")
    operated.asset("vm-2")
    operated.held("of-alice", asset="vm-2")
    for role in ROLES:
        operated.kubectl("create", "rolebinding", role, f"--clusterrole=assetlock-{role}", f"--user={role}")
    return operated


def create(operated: Operated, user: str, *documents: dict[str, Any]) -> Any:
    return operated.kubectl("create", *DRY, "-f", "-", user=user, stdin=json.dumps(documents[0]), check=False)


def lock(operated: Operated, user: str, **spec: Any) -> Any:
    return create(operated, user, document("AssetLock", "mine", {"assetName": "vm-1", **spec}))


ACTIONS: dict[str, tuple[Action, set[str]]] = {
    "sees assets": (lambda o, user: o.kubectl("get", "ast", user=user, check=False), set(ROLES)),
    "sees windows": (lambda o, user: o.kubectl("get", "mw", user=user, check=False), set(ROLES)),
    "locks": (lambda o, user: lock(o, user), {"user", "maintainer", "admin"}),
    "locks by a Lease": (
        lambda o, user: create(o, user, lease("vm-1", user)),
        {"user", "maintainer", "admin"},
    ),
    "ends another's lock": (
        lambda o, user: o.kubectl("delete", "alk", "of-alice", *DRY, user=user, check=False),
        {"maintainer", "admin"},
    ),
    "extends another's lock": (
        lambda o, user: o.kubectl(
            "patch",
            "alk",
            "of-alice",
            "--type=merge",
            '-p={"spec":{"ttl":"2h"}}',
            *DRY,
            user=user,
            check=False,
        ),
        {"maintainer", "admin"},
    ),
    "closes for maintenance": (lambda o, user: lock(o, user, mode="Maintenance"), {"maintainer", "admin"}),
    "closes at once": (
        lambda o, user: lock(o, user, mode="Maintenance", whenHeld="Revoke"),
        {"maintainer", "admin"},
    ),
    "keeps windows": (
        lambda o, user: create(o, user, document("MaintenanceWindow", "freeze", FREEZE)),
        {"maintainer", "admin"},
    ),
    "locks in another's name": (
        lambda o, user: lock(o, user, holder={"username": "carol"}),
        {"admin"},
    ),
    "makes assets": (lambda o, user: create(o, user, document("Asset", "vm-3", {"type": "VM"})), {"admin"}),
    "exempts others": (
        lambda o, user: o.kubectl(
            "patch",
            "ast",
            "vm-1",
            "--type=merge",
            '-p={"spec":{"exempt":["bot"]}}',
            *DRY,
            user=user,
            check=False,
        ),
        {"admin"},
    ),
    "approves": (
        lambda o, user: o.kubectl(
            "auth", "can-i", "approve", "assets.assetlock.dev/vm-1", user=user, check=False
        ),
        {"admin"},
    ),
    "breaks the glass": (
        lambda o, user: o.kubectl(
            "get", "ast", f"--as={user}", "--as-group=assetlock:break-glass", user=user, check=False
        ),
        set(),
    ),
}


@pytest.mark.parametrize("action", ACTIONS)
def test_every_role_may_do_what_it_says_and_no_more(staffed: Operated, action: str) -> None:
    do, allowed = ACTIONS[action]
    assert {role for role in ROLES if do(staffed, role).returncode == 0} == allowed


def test_a_right_on_one_asset_by_name_is_none_on_another(staffed: Operated) -> None:
    staffed.kubectl(
        "create",
        "role",
        "one",
        "--verb=lock,maintain",
        "--resource=assets.assetlock.dev",
        "--resource-name=vm-1",
    )
    staffed.kubectl(
        "create",
        "role",
        "locks",
        "--verb=create",
        "--resource=assetlocks.assetlock.dev,maintenancewindows.assetlock.dev",
    )
    for role in ("one", "locks"):
        staffed.kubectl("create", "rolebinding", f"dora-{role}", f"--role={role}", "--user=dora")
    assert lock(staffed, "dora").returncode == 0
    assert lock(staffed, "dora", mode="Maintenance").returncode == 0
    assert create(staffed, "dora", document("MaintenanceWindow", "freeze", FREEZE)).returncode == 0
    refused = lock(staffed, "dora", assetName="vm-2")
    assert "dora may not lock asset vm-2" in refused.stderr
    refused = create(
        staffed, "dora", document("MaintenanceWindow", "freeze", {**FREEZE, "assetNames": ["vm-2"]})
    )
    assert 'windows need the verb "maintain"' in refused.stderr
    by_label = {**FREEZE, "assetNames": [], "assetSelector": {"matchLabels": {"env": "prod"}}}
    refused = create(staffed, "dora", document("MaintenanceWindow", "freeze", by_label))
    assert "on all of the namespace" in refused.stderr


def test_who_may_not_end_locks_may_not_have_maintenance_end_them(staffed: Operated) -> None:
    staffed.kubectl("create", "role", "closer", "--verb=maintain", "--resource=assets.assetlock.dev")
    staffed.kubectl("create", "rolebinding", "dora", "--role=closer", "--user=dora")
    staffed.kubectl("create", "rolebinding", "dora-user", "--clusterrole=assetlock-user", "--user=dora")
    assert lock(staffed, "dora", mode="Maintenance").returncode == 0
    refused = lock(staffed, "dora", mode="Maintenance", whenHeld="Revoke")
    assert 'whenHeld: Revoke needs the verb "unlock"' in refused.stderr
    rule = ("--verb=create", "--resource=maintenancewindows.assetlock.dev")
    staffed.kubectl("create", "role", "planner", *rule)
    staffed.kubectl("create", "rolebinding", "dora-planner", "--role=planner", "--user=dora")
    assert create(staffed, "dora", document("MaintenanceWindow", "freeze", FREEZE)).returncode == 0
    revoking = document("MaintenanceWindow", "freeze", {**FREEZE, "whenHeld": "Revoke"})
    assert 'whenHeld: Revoke needs the verb "unlock"' in create(staffed, "dora", revoking).stderr


def test_nobody_writes_the_status_of_a_window(staffed: Operated) -> None:
    staffed.create(document("MaintenanceWindow", "freeze", FREEZE))
    refused = staffed.kubectl(
        "patch",
        "mw",
        "freeze",
        "--subresource=status",
        "--type=merge",
        '-p={"status":{"active":true}}',
        check=False,
    )
    assert "written by the operator alone" in refused.stderr


def test_a_window_may_close_as_many_assets_by_name_as_ten(staffed: Operated) -> None:
    names = [f"vm-{number}" for number in range(11)]
    staffed.kubectl(
        "create", "role", "keeper", "--verb=maintain", "--verb=unlock", "--resource=assets.assetlock.dev",
        *(f"--resource-name={name}" for name in names),
    )  # fmt: skip
    staffed.kubectl(
        "create", "role", "closer", "--verb=create,get", "--resource=maintenancewindows.assetlock.dev"
    )
    for role in ("keeper", "closer"):
        staffed.kubectl("create", "rolebinding", f"{role}-dora", f"--role={role}", "--user=dora")
    for count, whole in ((10, True), (11, False)):
        window = document(
            "MaintenanceWindow", "w", {**FREEZE, "assetNames": names[:count], "whenHeld": "Revoke"}
        )
        tried = create(staffed, "dora", window)
        assert (tried.returncode == 0) == whole, tried.stderr
    assert "dora may not maintain assets" in tried.stderr


def test_kubernetes_own_roles_see_lock_and_close_as_people_expect(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    for role in ("view", "edit", "admin"):
        operated.kubectl("create", "rolebinding", role, f"--clusterrole={role}", f"--user=k-{role}")
    may = {
        ("k-view", "get", "assets"): "yes",
        ("k-view", "create", "assetlocks"): "no",
        ("k-edit", "lock", "assets"): "yes",
        ("k-edit", "unlock", "assets"): "no",
        ("k-edit", "create", "assets"): "no",
        ("k-admin", "unlock", "assets"): "yes",
        ("k-admin", "create", "assets"): "yes",
    }
    for (user, verb, resource), answer in may.items():
        asked = ("auth", "can-i", verb, f"{resource}.assetlock.dev")
        until(lambda: operated.kubectl(*asked, user=user, check=False).stdout.strip() == answer, f"{asked}")  # noqa: B023
    refused = operated.kubectl("label", "configmap", "app", "a=b", user="k-view", check=False)
    assert refused.returncode == 1
    operated.held("first", "k-edit")
    assert "Locked" in operated.kubectl("get", "ast", "vm-1", user="k-view").stdout
