"""The policies alone: no process of ours runs here, and no webhook is installed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.cluster.conftest import until
from tests.cluster.stamping import Cluster, colour, config_map, lease

from assetlock.admission.rules.controllers import CONTROLLERS
from assetlock.core import names
from assetlock.core.fence.namespace_fence import GuardedTarget, NamespaceFence
from assetlock.core.fence.stamp import Stamp, StampedHolder
from assetlock.core.identity import Identity
from assetlock.dev import ControlPlane
from assetlock.install import manifests

LOCKED = "is locked through asset vm"
RIGHTS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "plain"},
    "rules": [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
        {"apiGroups": ["assetlock.dev"], "resources": ["assetlocks", "assetlocks/status"], "verbs": ["*"]},
        {
            "apiGroups": ["assetlock.dev"],
            "resources": ["assets"],
            "verbs": ["get", "update", "patch", "lock"],
        },
        {"apiGroups": ["assetlock.dev"], "resources": ["assets/status"], "verbs": ["update", "patch"]},
    ],
}
PLAIN = ("plain-users",)
BREAK_GLASS = ("system:masters", names.BREAK_GLASS_GROUP)
STRANGER = "mallory"
HOLDER = "alice with spaces"
MADE_UP = "427171a0-eba9-4acd-bc5c-2d150f43b02a"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        wanted = [*manifests("crds"), *manifests("manifests")]
        without_webhooks = [item for item in wanted if item["kind"] != "MutatingWebhookConfiguration"]
        running.kubectl("apply", "--filename=-", stdin=yaml.safe_dump_all(without_webhooks))
        running.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
        running.kubectl("create", "--filename=-", stdin=json.dumps(RIGHTS))
        running.kubectl("create", "clusterrolebinding", "plain", "--clusterrole=plain", f"--group={PLAIN[0]}")
        _wait_until_policies_are_in_force(running)
        yield running


@pytest.fixture
def cluster(plane: ControlPlane, request: pytest.FixtureRequest) -> Cluster:
    name = request.node.name.replace("_", "-").replace("[", "-").rstrip("]")[-60:].strip("-.:")
    plane.kubectl("create", "namespace", name)
    return Cluster(plane, name)


@pytest.fixture
def locked(cluster: Cluster) -> Cluster:
    """A ConfigMap, fenced for the holder."""
    cluster.create(config_map())
    cluster.stamp("configmap", "settings", HOLDER)
    return cluster


def _wait_until_policies_are_in_force(plane: ControlPlane) -> None:
    probe = Cluster(plane, "default")
    probe.create(config_map("probe"))
    probe.stamp("configmap", "probe", HOLDER)
    patch = ("patch", "configmap", "probe", "--type=merge", f"--patch={json.dumps(colour('blue'))}")
    create = ("create", "--filename=-")
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        # Dry runs: a write that got through before the policy came would have nothing left to change.
        written = probe.run(*patch, "--dry-run=server", user=STRANGER)
        made = probe.run(*create, "--dry-run=server", user=STRANGER, stdin=json.dumps(lease("two..dots")))
        if LOCKED in written.stderr and made.returncode:
            return
    raise AssertionError("the policies are not in force after 30 s")


def test_strangers_are_refused_with_403_and_told_who_holds_it(locked: Cluster) -> None:
    complaint = locked.patch("configmap", "settings", colour("blue"), user=STRANGER, check=False)
    assert "(Forbidden)" in complaint
    assert f"held by {HOLDER} (token 7)" in complaint
    assert f"kubectl get asset vm -n {locked.namespace}" in complaint


def test_an_asset_with_dots_in_its_name_is_named_whole(cluster: Cluster) -> None:
    cluster.create(config_map())
    cluster.stamp("configmap", "settings", HOLDER, asset="vm.db-prod-01")
    complaint = cluster.patch("configmap", "settings", colour("blue"), user=STRANGER, check=False)
    assert f"through asset vm.db-prod-01 in namespace {cluster.namespace}, held by" in complaint
    assert f"kubectl get asset vm.db-prod-01 -n {cluster.namespace}" in complaint


def test_a_lease_of_ours_is_named_after_one_asset(cluster: Cluster) -> None:
    fitting = [("a.b", "asset.a.b"), ("a.b", "asset-63.a.b"), ("1", "asset.1"), ("b", "asset-1.b")]
    others = [
        ("a.b", "asset-64.a.b"),
        ("a.b", "asset-0.a.b"),
        ("a.b", "asset.a.b.1"),
        ("a.b", "asset-1.axb"),
        ("b", "asset.a.b"),
        ("b", "asset-1.a.b"),
        ("asset-1.b", "asset-1.b"),
    ]
    for asset, name in (*fitting, *others):
        body = lease(asset, owner=STRANGER)
        body["metadata"]["name"] = name
        complaint = cluster.create(body, user=STRANGER)
        assert ("must be named" in complaint) == ((asset, name) in others), complaint


@pytest.mark.parametrize(
    "command",
    [
        ("patch", "configmap", "settings", "--type=merge", '--patch={"data":{"colour":"blue"}}'),
        ("patch", "configmap", "settings", "--type=json", '--patch=[{"op":"remove","path":"/data"}]'),
        ("label", "configmap", "settings", "team=mine"),
        ("label", "configmap", "settings", "assetlock.dev/fenced-"),
        ("annotate", "configmap", "settings", "note=mine"),
        ("delete", "configmap", "settings"),
        ("delete", "configmap", "--all"),
        ("replace", "--force", "--filename=-"),
        ("apply", "--server-side", "--force-conflicts", "--filename=-"),
    ],
    ids=["merge", "json", "label", "unfence", "annotate", "delete", "delete-all", "recreate", "apply"],
)
def test_no_verb_lets_a_cluster_admin_through(locked: Cluster, command: tuple[str, ...]) -> None:
    manifest = json.dumps({**config_map(), "data": {"colour": "blue"}})
    done = locked.run(*command, user=STRANGER, stdin=manifest if command[-1] == "--filename=-" else None)
    assert done.returncode != 0
    assert "Locked" in done.stderr
    assert locked.get("configmap", "settings")["data"] == {"colour": "red"}


def test_who_stands_against_the_deletion_of_a_whole_collection_is_named(locked: Cluster) -> None:
    everything = f"/api/v1/namespaces/{locked.namespace}/configmaps"
    complaint = locked.run("delete", "--raw", everything, user=STRANGER).stderr
    assert f"Locked: ConfigMap settings in namespace {locked.namespace} {LOCKED}" in complaint
    assert locked.get("configmap", "settings")["data"] == {"colour": "red"}


def test_the_holder_writes_and_deletes(locked: Cluster) -> None:
    locked.patch("configmap", "settings", colour("blue"), user=HOLDER)
    locked.must("delete", "configmap", "settings", user=HOLDER)


def test_writes_that_change_nothing_pass(locked: Cluster) -> None:
    locked.patch("configmap", "settings", colour("red"), user=STRANGER)


def test_only_oneself_is_named_as_who_set_the_targets_of_an_asset(cluster: Cluster) -> None:
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}
    asset = {"apiVersion": names.API_VERSION, "kind": "Asset", "spec": {"targets": [target]}}

    def made_by(setter: str, name: str) -> str:
        metadata = {"name": name, "annotations": {names.SETTER_ANNOTATION: setter}}
        return cluster.create({**asset, "metadata": metadata}, user=STRANGER)

    assert "targets-set-by is written by the operator alone" in made_by("root\nsystem:masters", "forged")
    assert made_by(f"{STRANGER}\nsystem:masters\nsystem:authenticated", "honest") == ""
    taken = {"metadata": {"annotations": {names.SETTER_ANNOTATION: None}}}
    complaint = cluster.patch("asset", "honest", taken, user=STRANGER, check=False)
    assert "targets-set-by is written by the operator alone" in complaint


def test_unlabelled_objects_are_not_affected(locked: Cluster) -> None:
    locked.create(config_map("free"), user=STRANGER)
    locked.patch("configmap", "free", colour("blue"), user=STRANGER)
    locked.must("delete", "configmap", "free", user=STRANGER)


def test_stamps_are_the_operators_also_against_the_holder(locked: Cluster) -> None:
    manifest = json.dumps({**config_map(), "data": {"colour": "blue"}})
    replaced = locked.run("replace", "--filename=-", user=HOLDER, stdin=manifest)
    unlabelled = locked.run("label", "configmap", "settings", "assetlock.dev/fenced-", user=HOLDER)
    stamp = {"metadata": {"annotations": {names.stamp_key("vm", locked.namespace): "forged"}}}
    forged = locked.patch("configmap", "settings", stamp, user=HOLDER, check=False)
    second = {"metadata": {"annotations": {names.stamp_key("other", locked.namespace): "x"}}}
    second["metadata"]["annotations"] = {
        key: f"{locked.uid('configmap', 'settings')}\n9 - {HOLDER}"
        for key in second["metadata"]["annotations"]
    }
    added = locked.patch("configmap", "settings", second, user=HOLDER, check=False)
    for complaint in (replaced.stderr, unlabelled.stderr, forged, added):
        assert "written by the operator alone" in complaint


def test_nobody_fences_an_object_in_the_operators_place(cluster: Cluster) -> None:
    cluster.create(config_map())
    stamp = f"{cluster.uid('configmap', 'settings')}\n9 - {STRANGER}"
    patch = {
        "metadata": {
            "labels": {names.FENCED_LABEL: "true"},
            "annotations": {names.stamp_key("vm", cluster.namespace): stamp},
        }
    }
    complaint = cluster.patch("configmap", "settings", patch, user=STRANGER, check=False)
    assert "written by the operator alone" in complaint


def test_a_copied_stamp_fences_nothing(locked: Cluster) -> None:
    original = locked.get("configmap", "settings")["metadata"]
    copied = {"labels": original["labels"], "annotations": original["annotations"]}
    assert not locked.create(config_map("copy", **copied), user=STRANGER)
    locked.patch("configmap", "copy", colour("blue"), user=STRANGER)
    locked.must("label", "configmap", "copy", "assetlock.dev/fenced-", user=STRANGER)


def test_a_part_of_a_name_is_not_the_holder(locked: Cluster) -> None:
    locked.stamp("configmap", "settings", "x - admin")
    for imposter in ("admin", "x", "- admin", "spaces"):
        assert LOCKED in locked.patch("configmap", "settings", colour("blue"), user=imposter, check=False)


def test_a_username_with_a_line_break_is_no_other_holder(locked: Cluster) -> None:
    for imposter in (f"x\n7 - {HOLDER}", f"{HOLDER}\n", f"- {HOLDER}"):
        complaint = locked.patch("configmap", "settings", colour("blue"), user=imposter, check=False)
        assert LOCKED in complaint.replace("\n", " ")


def test_every_claiming_asset_must_name_the_writer(locked: Cluster) -> None:
    locked.stamp("configmap", "settings", "bob", asset="database")
    assert "asset database" in locked.patch("configmap", "settings", colour("b"), user=HOLDER, check=False)
    locked.stamp("configmap", "settings", "bob", HOLDER, asset="database")
    locked.patch("configmap", "settings", colour("blue"), user=HOLDER)


def test_a_lock_without_holders_is_closed_to_everybody(locked: Cluster) -> None:
    locked.stamp("configmap", "settings")
    complaint = locked.patch("configmap", "settings", colour("blue"), user=HOLDER, check=False)
    assert "closed to everybody" in complaint


def test_who_is_exempt_updates_but_does_not_delete(locked: Cluster) -> None:
    stamp = Stamp(locked.uid("configmap", "settings"), (StampedHolder(7, Identity(HOLDER)),), ("provider",))
    patch = {"metadata": {"annotations": {names.stamp_key("vm", locked.namespace): str(stamp)}}}
    locked.patch("configmap", "settings", patch, user=names.CONTROLLER_USER)
    locked.patch("configmap", "settings", colour("blue"), user="provider")
    assert LOCKED in locked.run("delete", "configmap", "settings", user="provider").stderr


def test_who_is_exempt_scales_but_does_not_evict(cluster: Cluster) -> None:
    cluster.create(deployment())
    pod = {"metadata": {"name": "db-0"}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    cluster.create({"apiVersion": "v1", "kind": "Pod", **pod})
    targets = (GuardedTarget("deployments.apps", "web"), GuardedTarget("pods", "db-0"))
    guard = NamespaceFence(targets, (StampedHolder(7, Identity(HOLDER)),), ("provider",))
    patch = {
        "metadata": {
            "labels": {names.GUARDED_LABEL: "true"},
            "annotations": {names.namespace_fence_key("vm", cluster.namespace): str(guard)},
        }
    }
    cluster.patch("namespace", cluster.namespace, patch, user=names.CONTROLLER_USER)
    scale = ("scale", "deployment/web", "--replicas=0")
    until(
        lambda: LOCKED in cluster.run(*scale, user=STRANGER).stderr,
        "the API server knows of the guard",
        seconds=30,
    )
    cluster.must(*scale, user="provider")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "db-0"}}
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/db-0/eviction"
    command = ("create", "--raw", path, "--filename=-")
    assert LOCKED in cluster.run(*command, user="provider", stdin=json.dumps(eviction)).stderr


def test_a_message_with_two_hundred_holders_stays_readable(locked: Cluster) -> None:
    many = [f"user-{n:03} 'quoted' 100% " + "é" * 300 for n in range(200)]
    locked.stamp("configmap", "settings", *many)
    complaint = locked.patch("configmap", "settings", colour("blue"), user=STRANGER, check=False)
    assert "user-009 'quoted' 100%" in complaint
    assert "user-010" not in complaint
    assert "and 190 more" in complaint


def test_a_pod_bound_holder_is_that_pod_alone(locked: Cluster) -> None:
    account = f"system:serviceaccount:{locked.namespace}:worker"
    locked.must("create", "serviceaccount", "worker")
    locked.must(
        "create", "clusterrolebinding", locked.namespace, "--clusterrole=cluster-admin", f"--user={account}"
    )
    for pod in ("one", "two"):
        spec = {"serviceAccountName": "worker", "containers": [{"name": "c", "image": "none"}]}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod}, "spec": spec}
        assert not locked.create(manifest)
    locked.stamp("configmap", "settings", account, pod=locked.uid("pod", "one"))
    change = ("patch", "configmap", "settings", "--type=merge", '--patch={"data":{"colour":"blue"}}')
    for pod, works in (("two", False), ("one", True)):
        token = locked.plane.token_for(locked.namespace, "worker", pod=pod)
        assert (_with_token(locked, token, *change) == 0) is works
    assert LOCKED in locked.patch("configmap", "settings", colour("b"), user=account, check=False)


def test_status_is_open_but_not_for_metadata(cluster: Cluster) -> None:
    cluster.create(deployment())
    cluster.stamp("deployment", "web", HOLDER)
    status = ("patch", "deployment", "web", "--subresource=status", "--type=merge")
    written = cluster.run(*status, '--patch={"status":{"observedGeneration":1}}', user=STRANGER)
    assert written.returncode == 0, written.stderr
    annotated = cluster.run(*status, '--patch={"metadata":{"annotations":{"a":"b"}}}', user=STRANGER)
    assert "Locked" in annotated.stderr


def test_a_rollout_that_the_holder_starts_is_finished_by_the_controllers(cluster: Cluster) -> None:
    cluster.create(deployment())
    cluster.must("wait", "deployment/web", "--for=jsonpath={.status.observedGeneration}=1", "--timeout=30s")
    cluster.stamp("deployment", "web", HOLDER)
    cluster.must("set", "image", "deployment/web", "c=other", user=HOLDER)
    revision = "--for=jsonpath={.metadata.annotations.deployment\\.kubernetes\\.io/revision}=2"
    cluster.must("wait", "deployment/web", revision, "--timeout=30s")


def test_controllers_give_the_object_to_nobody(locked: Cluster) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": MADE_UP}
    controller = "system:serviceaccount:kube-system:deployment-controller"
    adopted = {"metadata": {"ownerReferences": [owner]}}
    assert "Locked" in locked.patch("configmap", "settings", adopted, user=controller, check=False)
    locked.patch("configmap", "settings", adopted, user=HOLDER)


def test_controllers_may_update_but_not_delete(locked: Cluster) -> None:
    controller = "system:serviceaccount:kube-system:deployment-controller"
    locked.patch("configmap", "settings", colour("blue"), user=controller)
    assert LOCKED in locked.run("delete", "configmap", "settings", user=controller).stderr


@pytest.mark.parametrize(
    "account",
    ["generic-garbage-collector", "namespace-controller", "horizontal-pod-autoscaler", "vpa-updater"],
)
def test_what_begins_things_by_itself_is_not_exempt(locked: Cluster, account: str) -> None:
    user = f"system:serviceaccount:kube-system:{account}"
    assert LOCKED in locked.patch("configmap", "settings", colour("blue"), user=user, check=False)
    assert LOCKED in locked.run("delete", "configmap", "settings", user=user).stderr


def test_the_list_of_controllers_is_the_same_in_policy_and_process() -> None:
    policy = next(
        item
        for item in manifests("manifests")
        if item["kind"] == "ValidatingAdmissionPolicy" and item["metadata"]["name"] == "assetlock-targets"
    )
    variables = {item["name"]: item["expression"] for item in policy["spec"]["variables"]}
    listed = variables["isController"].partition("[")[2].partition("]")[0].split(",")
    assert {name.strip().strip("'") for name in listed} == CONTROLLERS


def test_what_is_being_deleted_may_be_finished_but_not_changed(cluster: Cluster) -> None:
    cluster.create(config_map(finalizers=["example.com/backup"]))
    cluster.stamp("configmap", "settings", HOLDER)
    cluster.must("delete", "configmap", "settings", "--wait=false", user=HOLDER)
    assert LOCKED in cluster.patch("configmap", "settings", colour("blue"), user=STRANGER, check=False)
    cluster.must("delete", "configmap", "settings", "--wait=false", user=STRANGER)
    cluster.patch("configmap", "settings", {"metadata": {"finalizers": None}}, user=STRANGER)
    assert "NotFound" in cluster.run("get", "configmap", "settings").stderr


def test_breaking_the_glass_goes_through_every_policy(locked: Cluster) -> None:
    for group, works in (("system:masters", False), (names.BREAK_GLASS_GROUP, True)):
        change = ("--as=oncall", "--as-group=system:masters", f"--as-group={group}")
        done = locked.run(*change, "annotate", "configmap", "settings", f"by={group}")
        assert (done.returncode == 0) is works, done.stderr


def test_cluster_scoped_objects_are_fenced_too(cluster: Cluster) -> None:
    name = f"{cluster.namespace}-role"
    cluster.must("create", "clusterrole", name, "--verb=get", "--resource=pods")
    cluster.stamp("clusterrole", name, HOLDER)
    assert LOCKED in cluster.run("delete", "clusterrole", name, user=STRANGER).stderr
    cluster.must("delete", "clusterrole", name, user=HOLDER)


def test_a_hand_made_lease_is_its_owners(cluster: Cluster) -> None:
    assert 'must be "- bob"' in cluster.create(lease(owner="alice"), user="bob", groups=PLAIN)
    assert not cluster.create(lease(owner="alice"), user="alice", groups=PLAIN)
    renew = ("patch", "lease", "asset.vm", "--type=merge", '--patch={"spec":{"leaseDurationSeconds":90}}')
    take = ("patch", "lease", "asset.vm", "--type=merge", '--patch={"spec":{"holderIdentity":"bob"}}')
    for command in (renew, take, ("delete", "lease", "asset.vm")):
        assert "held by job-1 (owner - alice)" in cluster.run(*command, user="bob", groups=PLAIN).stderr
    for command in (renew, ("delete", "lease", "asset.vm")):
        assert not cluster.run(*command, user="alice", groups=PLAIN).stderr


def test_a_collector_does_not_change_a_lease(cluster: Cluster) -> None:
    cluster.create(lease(owner="alice"), user="alice", groups=PLAIN)
    renew = ("patch", "lease", "asset.vm", "--type=merge", '--patch={"spec":{"leaseDurationSeconds":90}}')
    for account in ("generic-garbage-collector", "namespace-controller"):
        user = f"system:serviceaccount:kube-system:{account}"
        assert "held by job-1" in cluster.run(*renew, user=user, groups=PLAIN).stderr


def test_a_lease_that_is_being_deleted_is_not_taken(cluster: Cluster) -> None:
    held = lease(owner="alice")
    held["metadata"]["finalizers"] = ["example.com/backup"]
    cluster.create(held, user="alice", groups=PLAIN)
    cluster.must("delete", "lease", "asset.vm", "--wait=false", user="alice")
    take = ("patch", "lease", "asset.vm", "--type=merge", '--patch={"spec":{"holderIdentity":"job-2"}}')
    assert "being deleted can't be taken" in cluster.run(*take, user="alice", groups=PLAIN).stderr
    cluster.patch("lease", "asset.vm", {"metadata": {"finalizers": None}}, user="alice")


def test_a_username_that_fits_on_no_line_locks_nothing(cluster: Cluster) -> None:
    for name in (f"mallory\n7 - {HOLDER}", "a" * 1025):
        for manifest in (lease(owner=name), assetlock("alice")):
            assert "of more than 1024, can't hold a lock" in cluster.create(manifest, user=name)


def test_what_an_impersonator_says_of_pod_and_credential_is_no_word_of_another_kind(locked: Cluster) -> None:
    uid = locked.uid("configmap", "settings")
    lines = [uid, "7 @group dba", "7 @maintenance alice: disks"]
    key = names.stamp_key("vm", locked.namespace)
    stamp = {"metadata": {"annotations": {key: "\n".join(lines)}}}
    locked.patch("configmap", "settings", stamp, user=names.CONTROLLER_USER)
    write = ("patch", "configmap", "settings", "--type=merge", f"--patch={json.dumps(colour('blue'))}")
    for claim in ("pod-uid", "credential-id"):
        for name, word in (("dba", "@group"), ("alice: disks", "@maintenance")):
            liar = locked.impersonating(name, **{claim: word})
            assert "Locked" in locked.run(*write, f"--kubeconfig={liar}").stderr
    member = locked.impersonating("eve", "dba")
    assert locked.run(*write, f"--kubeconfig={member}").returncode == 0


def test_a_lock_of_one_credential_is_not_the_accounts(locked: Cluster) -> None:
    uid = locked.uid("configmap", "settings")
    stamp = {
        "metadata": {"annotations": {names.stamp_key("vm", locked.namespace): f"{uid}\n7 JTI=build-7 ci"}}
    }
    locked.patch("configmap", "settings", stamp, user=names.CONTROLLER_USER)
    write = ("patch", "configmap", "settings", "--type=merge", f"--patch={json.dumps(colour('blue'))}")
    for claims in ({}, {"credential-id": "JTI=build-8"}, {"pod-uid": "JTI=build-7"}):
        complaint = locked.run(*write, f"--kubeconfig={locked.impersonating('ci', **claims)}").stderr
        assert "held by ci with credential JTI=build-7 (token 7)" in complaint
    holder = locked.impersonating("ci", **{"credential-id": "JTI=build-7"})
    assert locked.run(*write, f"--kubeconfig={holder}").returncode == 0


@pytest.mark.parametrize("seconds", [2147483647, 86401])
def test_an_absurd_lease_duration_is_refused(cluster: Cluster, seconds: int) -> None:
    complaint = cluster.create(lease(owner="alice", leaseDurationSeconds=seconds), user="alice", groups=PLAIN)
    assert f"between 1 and 86400 (a day), not {seconds}" in complaint


def test_a_lease_that_locks_is_named_after_its_asset(cluster: Cluster) -> None:
    misnamed = lease(owner="alice")
    metadata = misnamed["metadata"]
    metadata["name"] = "mine"
    assert "must be named asset.vm" in cluster.create(misnamed, user="alice", groups=PLAIN)


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"labels": None}},
        {"metadata": {"labels": {names.ASSET_LABEL: "other"}}},
        {"metadata": {"annotations": {names.OWNER_ANNOTATION: "- bob"}}},
        {"metadata": {"annotations": {names.TOKEN_ANNOTATION: "99"}}},
        {"metadata": {"annotations": {names.LOCK_ANNOTATION: "some"}}},
        {"metadata": {"annotations": {names.ACQUISITION_ANNOTATION: "mine"}}},
        {"metadata": {"annotations": {names.REVOKED_ANNOTATION: "bob"}}},
    ],
    ids=["unlabel", "relabel", "owner", "token", "lock", "acquisition", "revoked"],
)
def test_what_makes_a_lease_a_lock_is_not_its_owners_to_change(cluster: Cluster, patch: object) -> None:
    cluster.create(lease(owner="alice"), user="alice", groups=PLAIN)
    done = cluster.run(
        "patch",
        "lease",
        "asset.vm",
        "--type=merge",
        f"--patch={json.dumps(patch)}",
        user="alice",
        groups=PLAIN,
    )
    assert "(Forbidden)" in done.stderr


def test_a_freed_lease_is_taken_by_saying_who_takes_it(cluster: Cluster) -> None:
    cluster.create(lease(owner="alice"), user="alice", groups=PLAIN)
    patch = ("patch", "lease", "asset.vm", "--type=merge")
    cluster.run(*patch, '--patch={"spec":{"holderIdentity":""}}', user="alice", groups=PLAIN)
    anonymous = cluster.run(*patch, '--patch={"spec":{"holderIdentity":"b"}}', user="bob", groups=PLAIN)
    assert 'must be "- bob"' in anonymous.stderr
    owned = {"metadata": {"annotations": {names.OWNER_ANNOTATION: "- bob"}}, "spec": {"holderIdentity": "b"}}
    assert not cluster.run(*patch, f"--patch={json.dumps(owned)}", user="bob", groups=PLAIN).stderr


def test_the_lease_of_an_assetlock_is_the_operators(cluster: Cluster) -> None:
    held = lease(owner="alice")
    metadata = held["metadata"]
    metadata["annotations"] |= {names.LOCK_ANNOTATION: "patching"}
    assert not cluster.create(held, user=names.CONTROLLER_USER)
    complaint = cluster.run("delete", "lease", "asset.vm", user="alice", groups=PLAIN).stderr
    assert "managed by AssetLock patching; edit or delete that instead" in complaint


def test_a_heartbeat_lease_is_nobodys_business(cluster: Cluster) -> None:
    heartbeat = {**lease(), "metadata": {"name": "node-1"}}
    assert not cluster.create(heartbeat, user=STRANGER)
    cluster.must("delete", "lease", "node-1", user="someone-else")


def test_an_assetlock_names_who_creates_it(cluster: Cluster) -> None:
    assert "write username: bob" in cluster.create(assetlock(None), user="bob", groups=PLAIN)
    assert 'needs the verb "delegate"' in cluster.create(assetlock("alice"), user="bob", groups=PLAIN)
    assert not cluster.create(assetlock("bob"), user="bob", groups=PLAIN)


def test_a_delegate_locks_for_others(cluster: Cluster) -> None:
    assert not cluster.create(assetlock("alice"), user="ci")


def test_binding_to_a_pod_needs_a_pod(cluster: Cluster) -> None:
    claimed = {"username": "bob", "podName": "builder", "podUID": MADE_UP}
    lock = assetlock(None, bindTo="Pod")
    lock["spec"]["holder"] = claimed
    assert "needs a token that is bound to a pod" in cluster.create(lock, user="bob", groups=PLAIN)


def test_an_assetlock_names_no_pod_that_the_token_is_not_bound_to(cluster: Cluster) -> None:
    for claimed in ({"podUID": MADE_UP}, {"podName": "builder"}):
        lock = assetlock("bob")
        lock["spec"]["holder"] |= claimed
        assert "spec.holder must be bob without a pod" in cluster.create(lock, user="bob", groups=PLAIN)


def test_locking_needs_the_verb_lock(cluster: Cluster) -> None:
    rules = ("--verb=create", "--resource=assetlocks.assetlock.dev")
    cluster.must("create", "role", "creator", *rules)
    cluster.must("create", "rolebinding", "creator", "--role=creator", "--user=bob")
    complaint = cluster.create(assetlock("bob"), user="bob", groups=("nobody-special",))
    assert 'needs the verb "lock" on assets' in complaint


def test_a_lock_is_ended_by_its_holder_or_with_the_verb_unlock(cluster: Cluster) -> None:
    cluster.create(assetlock("alice"), user="alice", groups=PLAIN)
    shorten = ("patch", "alk", "patching", "--type=merge", '--patch={"spec":{"ttl":"1s"}}')
    adopt = (
        "patch",
        "alk",
        "patching",
        "--type=merge",
        '--patch={"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u"}]}}',
    )
    for command in (shorten, adopt, ("delete", "alk", "patching")):
        complaint = cluster.run(*command, user="bob", groups=PLAIN).stderr
        assert 'needs the verb "unlock"' in complaint
    assert not cluster.run("delete", "alk", "patching", user="alice", groups=PLAIN).stderr
    cluster.create(assetlock("alice"), user="alice", groups=PLAIN)
    cluster.must("delete", "alk", "patching", user="unlocker")


@pytest.mark.parametrize("kind", ["asset", "alk"])
def test_status_is_the_operators(cluster: Cluster, kind: str) -> None:
    cluster.create(assetlock("alice"), user="alice", groups=PLAIN)
    cluster.create(asset())
    name = "vm" if kind == "asset" else "patching"
    patch = {"status": {"lockState": "Unlocked"} if kind == "asset" else {"state": "Held"}}
    command = ("patch", kind, name, "--subresource=status", "--type=merge", f"--patch={json.dumps(patch)}")
    for user in ("alice", STRANGER):
        assert "written by the operator alone" in cluster.run(*command, user=user).stderr
    cluster.must(*command, user=names.CONTROLLER_USER)


def test_a_locked_asset_is_its_holders(cluster: Cluster) -> None:
    cluster.create(asset())
    _lock_asset(cluster, "alice")
    change = {"spec": {"description": "mine"}}
    for complaint in (
        cluster.patch("asset", "vm", change, user=STRANGER, check=False),
        cluster.run("label", "asset", "vm", "a=b", user=STRANGER).stderr,
        cluster.run("delete", "asset", "vm", user=STRANGER).stderr,
    ):
        assert "is held by alice" in complaint
    cluster.patch("asset", "vm", change, user="alice")
    cluster.must("delete", "asset", "vm", user="alice")


def test_exempting_others_needs_the_verb_maintain(cluster: Cluster) -> None:
    cluster.create(asset())
    patch = '--patch={"spec":{"exempt":["bob"]}}'
    done = cluster.run("patch", "asset", "vm", "--type=merge", patch, user="bob", groups=PLAIN)
    assert 'needs the verb "maintain"' in done.stderr
    cluster.must("patch", "asset", "vm", "--type=merge", patch, user="maintainer")


def test_a_namespace_with_locks_in_it_can_be_deleted(cluster: Cluster) -> None:
    cluster.create(assetlock("alice"), user="alice", groups=PLAIN)
    cluster.create(lease(owner="alice"), user="alice", groups=PLAIN)
    cluster.must("delete", "namespace", cluster.namespace, "--timeout=60s")


def deployment() -> dict[str, Any]:
    """A Deployment whose pods never run, as there is no kubelet."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def assetlock(holder: str | None, **spec: object) -> dict[str, Any]:
    """An AssetLock for somebody."""
    named = {"holder": {"username": holder}} if holder else {}
    return {
        "apiVersion": names.API_VERSION,
        "kind": "AssetLock",
        "metadata": {"name": "patching"},
        "spec": {"assetName": "vm", **named, **spec},
    }


def asset() -> dict[str, Any]:
    """An Asset without targets."""
    spec = {"type": "VM"}
    return {"apiVersion": names.API_VERSION, "kind": "Asset", "metadata": {"name": "vm"}, "spec": spec}


def _lock_asset(cluster: Cluster, holder: str) -> None:
    held = {"identity": holder, "fencingToken": 1, "acquisition": "a", "mode": "Exclusive"}
    patch = {"status": {"lockState": "Locked", "holders": [held], "fencingToken": 1}}
    arguments = ("--subresource=status", "--type=merge", f"--patch={json.dumps(patch)}")
    cluster.must("patch", "asset", "vm", *arguments, user=names.CONTROLLER_USER)


def _with_token(cluster: Cluster, token: str, *command: str) -> int:
    """Run kubectl with a token in the place of a client certificate."""
    config = json.loads(cluster.plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = cluster.plane.folder / f"{cluster.namespace}.kubeconfig"
    path.write_text(json.dumps(config))
    return cluster.run(f"--kubeconfig={path}", *command).returncode
