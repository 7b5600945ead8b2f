"""The CRDs on a real API server: what it refuses and in which words, what it fills in, what has to stay."""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assetlock.dev import ControlPlane
from assetlock.model.reference import EXAMPLE

ROOT = Path(__file__).parents[2]
NAME = "an asset's name is a DNS subdomain of at most 63 characters: a-z, 0-9, - and single dots"
DURATION = "a duration is written like 30m, 48h, PT30M or P2D, without years, months, weeks or a sign"
ZERO = "must be longer than zero"
IMMUTABLE = (
    "cannot be changed: only ttl, renewTime, reason and priority can; create another AssetLock instead"
)
FAR_AHEAD = "2126-05-04T12:00:00Z"
ONE_OR_SEVERAL = (
    "a lock names one asset in assetName, several in assetNames, or selects some with assetSelector"
)
POOL = {"matchLabels": {"pool": "x"}}
LOCK = {"assetName": "db", "ttl": "PT30M", "holder": {"username": "alice"}, "reason": "patches"}
ENDED = "a lock that has ended stays so; create another AssetLock instead"


class Kubectl:
    """kubectl in one namespace."""

    def __init__(self, control_plane: ControlPlane, namespace: str) -> None:
        self._control_plane = control_plane
        self._namespace = namespace

    def __call__(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        return self._control_plane.kubectl(
            f"--namespace={self._namespace}", *arguments, stdin=stdin, check=check
        )

    def create(self, kind: str, name: str, spec: object, *options: str, check: bool = True) -> Any:
        manifest = {
            "apiVersion": "assetlock.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        arguments = ("create", "-f", "-", "-o", "json", *options)
        done = self(*arguments, stdin=json.dumps(manifest), check=check)
        return json.loads(done.stdout) if check else done

    def accepted(self, kind: str, name: str, spec: object) -> Any:
        """What would be stored."""
        return self.create(kind, name, spec, "--dry-run=server")["spec"]

    def patch(self, what: str, change: object, *options: str) -> None:
        self("patch", what, "--type=merge", f"--patch={json.dumps(change)}", *options)

    def refusal(self, *arguments: str, stdin: str | None = None) -> str:
        done = self(*arguments, stdin=stdin, check=False)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def refused_patch(self, what: str, change: object, *options: str) -> str:
        return self.refusal("patch", what, "--type=merge", f"--patch={json.dumps(change)}", *options)

    def refused_creation(self, kind: str, name: str, spec: object) -> str:
        done = self.create(kind, name, spec, check=False)
        assert done.returncode != 0, done.stdout
        return str(done.stderr)

    def rows(self, *arguments: str) -> list[list[str]]:
        lines = self("get", *arguments).stdout.splitlines()
        return [re.split(r"\s{2,}", line.strip()) for line in lines]


@pytest.fixture(scope="module")
def installed(control_plane: ControlPlane) -> ControlPlane:
    control_plane.kubectl("apply", f"--filename={ROOT / 'crds'}")
    for crd in ("assets.assetlock.dev", "assetlocks.assetlock.dev"):
        control_plane.kubectl("wait", f"crd/{crd}", "--for=condition=Established", "--timeout=30s")
    return control_plane


@pytest.fixture(scope="module")
def kubectl(installed: ControlPlane) -> Iterator[Kubectl]:
    """In a namespace that these tests share: whoever makes an object gives it a name of its own."""
    name = f"crds-{uuid.uuid4().hex[:10]}"
    installed.kubectl("create", "namespace", name)
    yield Kubectl(installed, name)
    installed.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def alone(installed: ControlPlane, namespace: str) -> Kubectl:
    """In a namespace of the test's own, for those that list."""
    return Kubectl(installed, namespace)


@pytest.fixture
def lock(kubectl: Kubectl) -> str:
    name = f"lock-{uuid.uuid4().hex[:10]}"
    kubectl.create("AssetLock", name, LOCK)
    return f"assetlocks/{name}"


@pytest.fixture
def asset(kubectl: Kubectl) -> str:
    name = f"asset-{uuid.uuid4().hex[:10]}"
    kubectl.create("Asset", name, {"type": "Database"})
    return f"assets/{name}"


def test_the_api_server_has_nothing_to_complain_about(installed: ControlPlane) -> None:
    for plural in ("assets", "assetlocks"):
        crd = json.loads(installed.kubectl("get", "crd", f"{plural}.assetlock.dev", "-o", "json").stdout)
        conditions = {each["type"]: each["status"] for each in crd["status"]["conditions"]}
        assert conditions["NamesAccepted"] == conditions["Established"] == "True"
        assert conditions.get("NonStructuralSchema", "False") == "False"


def test_writing_the_crds_warns_of_nothing(installed: ControlPlane) -> None:
    replaced = installed.kubectl("replace", "--dry-run=server", f"--filename={ROOT / 'crds'}")
    assert replaced.stderr == ""


def test_the_example_of_the_reference_page_is_accepted(kubectl: Kubectl) -> None:
    kubectl("create", "--validate=strict", "--dry-run=server", "-f", "-", stdin=EXAMPLE)


@pytest.mark.parametrize("name", ["vm." + "a" * 61, "a" * 253], ids=["64 long", "253 long"])
def test_an_asset_whose_name_is_too_long_is_refused(kubectl: Kubectl, name: str) -> None:
    assert f"metadata.name: Invalid value: {NAME}" in kubectl.refused_creation("Asset", name, {})


@pytest.mark.parametrize("name", ["a" * 63, "vm.db-prod-01", "1.2.3.4"], ids=["63 long", "dots", "address"])
def test_an_asset_may_have_a_name_of_63_characters_with_dots(kubectl: Kubectl, name: str) -> None:
    kubectl.accepted("Asset", name, {})
    kubectl.accepted("AssetLock", f"lock-{name}", {"assetName": name})


TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "db"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"apiVersion": "apps/v1/deployments"}, "an apiVersion is a group and a version, such as apps/v1"),
        ({"apiVersion": "apps"}, "an apiVersion is a group and a version, such as apps/v1"),
        ({"kind": "apps/Deployment"}, "a kind is one word, such as Deployment"),
        ({"kind": ""}, "spec.targets[0].kind"),
        ({"name": "../secrets/x"}, "a name has no / and no %, and is not . or .."),
        ({"name": ".."}, "a name has no / and no %, and is not . or .."),
        ({"namespace": "Shop"}, "a namespace is a DNS label: a-z, 0-9 and -"),
    ],
)
def test_a_target_that_can_be_no_object_is_refused(
    kubectl: Kubectl, change: dict[str, str], message: str
) -> None:
    assert message in kubectl.refused_creation("Asset", "db", {"targets": [TARGET | change]})


@pytest.mark.parametrize(
    "target",
    [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "settings", "namespace": "other"},
        {"apiVersion": "kubevirt.io/v1alpha3", "kind": "VirtualMachine", "name": "vm-1"},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "system:node"},
    ],
    ids=lambda target: target["kind"],
)
def test_a_target_may_be_of_any_kind_known_or_not(kubectl: Kubectl, target: dict[str, str]) -> None:
    assert kubectl.accepted("Asset", "db", {"targets": [target]})["targets"] == [target]


def test_the_same_target_twice_is_refused(kubectl: Kubectl) -> None:
    spec = {"targets": [TARGET, TARGET]}
    assert "spec.targets: Invalid value: each object is named only once" in kubectl.refused_creation(
        "Asset", "db", spec
    )


def test_as_many_targets_as_allowed_are_cheap_enough_to_check(kubectl: Kubectl) -> None:
    targets = [TARGET | {"name": f"{number:0253}"} for number in range(64)]
    kubectl.accepted("Asset", "db", {"targets": targets})
    assert "must have at most 64 items" in kubectl.refused_creation(
        "Asset", "more", {"targets": [*targets, TARGET]}
    )


SELECTING = {"apiVersion": "v1", "kind": "ConfigMap"}


def test_a_target_may_be_selected_by_labels(kubectl: Kubectl) -> None:
    expressions = [
        {"key": "example.com/tier", "operator": "In", "values": ["db", ""]},
        {"key": "team", "operator": "Exists"},
    ]
    selector = {"matchLabels": {"app": "shop"}, "matchExpressions": expressions}
    targets = [SELECTING | {"selector": selector, "namespace": "other"}]
    assert kubectl.accepted("Asset", "db", {"targets": targets})["targets"] == targets


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ({}, "a target has either a name or a selector"),
        ({"name": "a", "selector": {"matchLabels": {"a": "b"}}}, "a target has either a name or a selector"),
        ({"selector": {}}, "an empty selector selects everything"),
        ({"selector": {"matchLabels": {}, "matchExpressions": []}}, "an empty selector selects everything"),
        ({"selector": {"matchLabels": {"a b": "c"}}}, "a label's key is a name"),
        ({"selector": {"matchLabels": {"a": "b c"}}}, "a label's value has letters and digits"),
        ({"selector": {"matchLabels": {"assetlock.dev/fenced": "true"}}}, "come and go with locks"),
        (
            {"selector": {"matchExpressions": [{"key": "assetlock.dev/x", "operator": "Exists"}]}},
            "come and go",
        ),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "In and NotIn need values"),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
            "Exists and DoesNotExist have none",
        ),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}},
            'supported values: "In", "NotIn", "Exists", "DoesNotExist"',
        ),
    ],
)
def test_a_selector_that_selects_nothing_sensible_is_refused(
    kubectl: Kubectl, target: dict[str, Any], message: str
) -> None:
    assert message in kubectl.refused_creation("Asset", "db", {"targets": [SELECTING | target]})


def test_as_many_selectors_as_allowed_are_cheap_enough_to_check(kubectl: Kubectl) -> None:
    values = [f"{number:063}" for number in range(16)]
    expressions = [
        {"key": f"{'a' * 253}/{number:063}", "operator": "In", "values": values} for number in range(16)
    ]
    labels = {f"{'a' * 253}/{number:063}": values[number] for number in range(16)}
    targets = [
        SELECTING
        | {"selector": {"matchLabels": labels, "matchExpressions": expressions}, "namespace": f"n{n}"}
        for n in range(64)
    ]
    kubectl.accepted("Asset", "db", {"targets": targets})


def test_metadata_of_an_asset_keeps_any_json(kubectl: Kubectl) -> None:
    metadata = {"owner": {"team": "shop"}, "ports": [1, 2.5, "x", {"a": None}], "critical": True}
    assert kubectl.accepted("Asset", "db", {"metadata": metadata})["metadata"] == metadata


@pytest.mark.parametrize("field", ["defaultTTL", "maxTTL"])
@pytest.mark.parametrize(("text", "message"), [("0s", ZERO), ("banana", DURATION)])
def test_a_limit_of_an_asset_that_is_no_length_of_time_is_refused(
    kubectl: Kubectl, field: str, text: str, message: str
) -> None:
    refusal = kubectl.refused_creation("Asset", "db", {field: text})
    assert f'spec.{field}: Invalid value: "{text}": {message}' in refusal


@pytest.mark.parametrize("text", ["0s", "PT0S", "P0DT0H", "0.0h"])
def test_a_lock_of_no_duration_is_refused(kubectl: Kubectl, text: str) -> None:
    refusal = kubectl.refused_creation("AssetLock", "l", {"assetName": "db", "ttl": text})
    assert f'spec.ttl: Invalid value: "{text}": {ZERO}' in refusal


@pytest.mark.parametrize(
    "text", ["-5m", "PT-5M", "banana", "", "5", "P", "P1DT", "P1M", "P1Y", "P1W", "5m\n"]
)
def test_a_lock_whose_ttl_is_no_duration_is_refused_for_that_alone(kubectl: Kubectl, text: str) -> None:
    refusal = kubectl.refused_creation("AssetLock", "l", {"assetName": "db", "ttl": text})
    assert f"spec.ttl: Invalid value: {json.dumps(text)}: {DURATION}" in refusal
    assert ZERO not in refusal


@pytest.mark.parametrize("text", ["PT30M", "P400D", "1h30m", "1.5h", "PT0.5S", "500ms"])
def test_a_ttl_is_kept_as_it_was_written(kubectl: Kubectl, text: str) -> None:
    assert kubectl.accepted("AssetLock", "l", {"assetName": "db", "ttl": text})["ttl"] == text


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, ONE_OR_SEVERAL),
        ({"assetName": "db", "assetNames": ["vm"]}, ONE_OR_SEVERAL),
        ({"assetNames": ["vm"], "assetSelector": POOL}, ONE_OR_SEVERAL),
        ({"assetName": "db", "count": 2}, "how many are wanted goes with assetSelector"),
        ({"assetSelector": POOL, "count": 0}, "should be greater than or equal to 1"),
        ({"assetSelector": POOL, "count": 200}, "should be less than or equal to 32"),
        ({"assetSelector": {}}, "an empty selector selects everything"),
        ({"assetSelector": POOL, "takeOver": "old"}, "one asset is taken over at a time"),
        ({"assetNames": []}, "should have at least 1 items"),
        ({"assetNames": ["db", "vm", "db"]}, 'spec.assetNames[2]: Duplicate value: "db"'),
        ({"assetNames": ["db", "vm.-1"]}, NAME),
        ({"assetNames": [f"vm-{n}" for n in range(200)]}, "spec.assetNames: Too many: 200"),
        ({"assetNames": ["db", "vm"], "takeOver": "old"}, "one asset is taken over at a time"),
        (
            {"assetNames": ["db", "vm"], "mode": "Maintenance", "whenHeld": "Revoke"},
            "nobody is revoked before all of them can be had",
        ),
        ({"assetName": "a" * 253}, NAME),
        ({"assetName": "vm..1"}, NAME),
        ({"assetName": "VM"}, NAME),
        ({"assetName": ""}, NAME),
        ({"assetName": "db", "mode": "Sharde"}, 'Unsupported value: "Sharde": supported values: "Exclusive"'),
        ({"assetName": "db", "bindTo": "Node"}, 'Unsupported value: "Node": supported values: "User", "Pod"'),
        ({"assetName": "db", "bindTo": "Pod"}, "Pod needs a holder with a podUID"),
        ({"assetName": "db", "wait": "-1s"}, f'spec.wait: Invalid value: "-1s": {DURATION}'),
        ({"assetName": "db", "priority": 1001}, "should be less than or equal to 1000"),
        ({"assetName": "db", "ttl": 5}, "spec.ttl in body must be of type string"),
        (
            {"assetName": "db", "holder": {"username": "a\nb"}},
            "a name has no line breaks and no control characters",
        ),
        (
            {"assetName": "db", "holder": {"username": "a", "podUID": "1 b"}},
            "the UID of a pod has 32 hexadecimal digits",
        ),
        ({"assetName": "db", "reason": "x" * 1025}, "spec.reason: Too long"),
    ],
)
def test_a_lock_that_makes_no_sense_is_refused(
    kubectl: Kubectl, spec: dict[str, object], message: str
) -> None:
    assert message in kubectl.refused_creation("AssetLock", "l", spec)


def test_a_misspelt_field_is_refused(kubectl: Kubectl) -> None:
    refusal = kubectl.refused_creation("AssetLock", "l", {"assetName": "db", "tll": "5m"})
    assert 'unknown field "spec.tll"' in refusal


def test_what_a_lock_leaves_out_is_filled_in(kubectl: Kubectl) -> None:
    assert kubectl.accepted("AssetLock", "l", {"assetName": "db"}) == {
        "assetName": "db",
        "mode": "Exclusive",
        "wait": "0s",
        "priority": 0,
        "bindTo": "User",
        "extendOnWrite": True,
        "onExpiry": "Release",
    }


def test_ttl_reason_and_priority_of_a_lock_may_be_changed(kubectl: Kubectl, lock: str) -> None:
    kubectl.patch(lock, {"spec": {"ttl": "1h", "reason": None, "priority": 5}})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("assetName", "other"),
        ("assetNames", ["db", "vm"]),
        ("assetSelector", POOL),
        ("count", 2),
        ("wait", "5m"),
        ("holder", {"username": "mallory"}),
        ("holder", {"podName": "added"}),
        ("holder", None),
        ("holderId", "added"),
        ("bindTo", "Pod"),
        ("extendOnWrite", False),
        ("ttlSecondsAfterFinished", 5),
    ],
)
def test_nothing_else_of_a_lock_may_be_changed_added_or_removed(
    kubectl: Kubectl, lock: str, field: str, value: object
) -> None:
    refusal = kubectl.refused_patch(lock, {"spec": {field: value}})
    # Of the holder each field by itself: one of them may change.
    assert re.search(rf"spec\.{field}(\.\w+)?: Invalid value: {IMMUTABLE}", refusal)


@pytest.mark.parametrize("ended", ["Released", "Expired", "Revoked", "Failed", "Quarantined"])
def test_a_lock_that_has_ended_stays_as_it_ended(kubectl: Kubectl, lock: str, ended: str) -> None:
    kubectl.patch(lock, {"status": {"state": "Held"}}, "--subresource=status")
    kubectl.patch(lock, {"status": {"state": ended}}, "--subresource=status")
    for state in ("Pending", "Held", "Released" if ended != "Released" else "Expired", None):
        refusal = kubectl.refused_patch(lock, {"status": {"state": state}}, "--subresource=status")
        assert f"status.state: Invalid value: {ENDED}" in refusal
    assert ENDED in kubectl.refused_patch(lock, {"status": None}, "--subresource=status")


def test_a_lock_that_has_ended_can_still_be_labelled_and_gain_conditions(kubectl: Kubectl, lock: str) -> None:
    kubectl.patch(lock, {"status": {"state": "Released"}}, "--subresource=status")
    kubectl("label", lock, "team=shop")
    condition = {"type": "Finished", "status": "True", "lastTransitionTime": "2026-05-04T12:00:00Z"}
    kubectl.patch(lock, {"status": {"conditions": [condition]}}, "--subresource=status")


def test_a_fencing_token_of_an_asset_grows_or_stays(kubectl: Kubectl, asset: str) -> None:
    for token in (1, 41, 41, 2**53):
        kubectl.patch(asset, {"status": {"fencingToken": token}}, "--subresource=status")


@pytest.mark.parametrize("status", [{"fencingToken": 40}, {"fencingToken": None}, None])
def test_a_fencing_token_of_an_asset_is_never_lowered_or_lost(
    kubectl: Kubectl, asset: str, status: object
) -> None:
    kubectl.patch(asset, {"status": {"fencingToken": 41}}, "--subresource=status")
    refusal = kubectl.refused_patch(asset, {"status": status}, "--subresource=status")
    assert "status.fencingToken: Invalid value: a fencing token never goes down" in refusal


def test_a_status_cannot_be_given_at_creation_nor_through_the_object(kubectl: Kubectl, asset: str) -> None:
    kubectl.patch(asset, {"status": {"fencingToken": 41}})
    assert json.loads(kubectl("get", asset, "-o", "json").stdout)["status"] == {"observedGeneration": 0}


def test_two_conditions_of_one_type_are_refused(kubectl: Kubectl, asset: str) -> None:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-05-04T12:00:00Z"}
    change = {"status": {"conditions": [condition, condition]}}
    assert "Duplicate value" in kubectl.refused_patch(asset, change, "--subresource=status")


def test_assets_are_found_by_lock_state_and_by_type(alone: Kubectl) -> None:
    alone.create("Asset", "db", {"type": "Database"})
    alone.create("Asset", "vm", {"type": "VM"})
    alone.patch("assets/db", {"status": {"lockState": "Locked"}}, "--subresource=status")
    for selector in ("status.lockState=Locked", "spec.type=Database", "spec.type!=VM"):
        names = alone("get", "assets", "-o", "name", f"--field-selector={selector}").stdout.split()
        assert names == ["asset.assetlock.dev/db"], selector


def test_locks_are_found_by_asset_and_by_state(alone: Kubectl) -> None:
    alone.create("AssetLock", "patches", LOCK)
    alone.create("AssetLock", "other", LOCK | {"assetName": "vm"})
    alone.patch("assetlocks/patches", {"status": {"state": "Held"}}, "--subresource=status")
    for selector in ("spec.assetName=db", "status.state=Held", "spec.assetName=db,status.state=Held"):
        names = alone("get", "assetlocks", "-o", "name", f"--field-selector={selector}").stdout.split()
        assert names == ["assetlock.assetlock.dev/patches"], selector


def test_columns_of_an_asset_show_who_holds_it_until_when(alone: Kubectl) -> None:
    alone.create("Asset", "db", {"type": "Database"})
    holder = {"identity": "alice", "fencingToken": 1, "acquisition": "a", "expireTime": FAR_AHEAD}
    status = {
        "lockState": "Locked",
        "heldBy": "alice",
        "holders": [holder],
        "queueLength": 3,
        "fencingToken": 1,
    }
    alone.patch("assets/db", {"status": status}, "--subresource=status")
    head, row = alone.rows("ast")
    assert head == [
        *("NAME", "TYPE", "LOCK", "SLOTS", "HOLDER", "SINCE", "UNTIL", "FENCED", "REASON", "QUEUE", "AGE")
    ]
    assert row[:-1] == ["db", "Database", "Locked", "alice", FAR_AHEAD, "3"]


def test_columns_of_a_lock_show_its_state_and_token(alone: Kubectl) -> None:
    alone.create("AssetLock", "patches", LOCK)
    place = {"queuePosition": 1, "waitsFor": "bob (first)"}
    status = {"state": "Held", **place, "expireTime": FAR_AHEAD, "fencingToken": 41}
    alone.patch("assetlocks/patches", {"status": status}, "--subresource=status")
    head, row = alone.rows("alk")
    assert head == [
        *("NAME", "ASSET", "STATE", "REASON", "HOLDER", "SINCE", "UNTIL", "FENCED", "POSITION", "AGE")
    ]
    assert row[:-1] == ["patches", "db", "Held", "alice", FAR_AHEAD, "1"]
    head, row = alone.rows("alk", "-o", "wide")
    assert head[-6:-1] == ["MODE", "HOLDER ID", "TOKEN", "WAITS FOR", "FOR"]
    assert row[-5:-1] == ["Exclusive", "41", "bob (first)", "patches"]


def test_the_category_lists_every_kind(alone: Kubectl) -> None:
    alone.create("Asset", "db", {})
    alone.create("AssetLock", "patches", LOCK)
    listed = set(alone("get", "locks", "-o", "name").stdout.split())
    assert listed == {"asset.assetlock.dev/db", "assetlock.assetlock.dev/patches"}


def test_a_single_lock_can_be_named_by_its_kind(alone: Kubectl) -> None:
    alone.create("AssetLock", "patches", LOCK)
    assert (
        alone("get", "assetlock", "patches", "-o", "name").stdout.strip() == "assetlock.assetlock.dev/patches"
    )


def test_explain_tells_what_a_field_is_for(installed: ControlPlane) -> None:
    explained = installed.kubectl("explain", "assetlocks.spec.wait").stdout
    assert "How long to queue for the lock, such as 10m." in explained
