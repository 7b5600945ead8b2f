"""Targets that are selected by their labels, as they are at each moment."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.cluster.conftest import Operated, document, until

from assetlock.core.selection import described, selects
from assetlock.model.selector import LabelSelector, Requirement

WEB: dict[str, Any] = {"matchLabels": {"app": "web"}}
FENCED = r"jsonpath={.metadata.labels.assetlock\.dev/fenced}=true"


def select(
    operated: Operated, selector: dict[str, Any] = WEB, *, kind: str = "ConfigMap", name: str = "vm-1"
) -> None:
    """An asset whose targets are selected."""
    api_version = "v1" if kind == "ConfigMap" else "rbac.authorization.k8s.io/v1"
    target = {"apiVersion": api_version, "kind": kind, "selector": selector}
    operated.create(document("Asset", name, {"targets": [target]}))


def make(operated: Operated, name: str, app: str | None = "web", *, user: str | None = None) -> None:
    metadata: dict[str, Any] = {"name": name, "labels": {"app": app} if app else {}}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": "0"}}
    operated.create(made, user=user)


def fenced(operated: Operated, name: str) -> bool:
    return "assetlock.dev/fenced" in operated.get("configmap", name)["metadata"].get("labels", {})


def condition(operated: Operated, name: str = "vm-1") -> dict[str, Any]:
    conditions = operated.get("ast", name)["status"]["conditions"]
    found: dict[str, Any] = next(c for c in conditions if c["type"] == "Fenced")
    return found


def test_all_that_is_selected_is_fenced_when_the_lock_is_announced_and_nothing_else(
    operated: Operated,
) -> None:
    for name in ("web-1", "web-2", "web-3"):
        make(operated, name)
    make(operated, "other", app="db")
    select(operated)
    operated.held("first")
    assert [operated.write(name, "bob").returncode for name in ("web-1", "web-2", "web-3")] == [1, 1, 1]
    assert operated.write("other", "bob").returncode == 0
    assert operated.write("web-2", "alice").returncode == 0
    assert operated.get("ast", "vm-1")["status"]["fencedTargets"] == 3
    operated.kubectl("delete", "alk", "first", user="alice")
    until(lambda: not any(fenced(operated, name) for name in ("web-1", "web-2", "web-3")), "unstamped")
    assert operated.get("ast", "vm-1")["status"]["fencedTargets"] == 0


def test_what_comes_to_be_selected_while_it_is_locked_is_fenced_and_what_leaves_is_not(
    operated: Operated,
) -> None:
    make(operated, "leaving")
    make(operated, "joining", app=None)
    select(operated)
    operated.held("first")
    make(operated, "new", user="alice")
    operated.kubectl("label", "configmap", "joining", "app=web")
    for name in ("new", "joining"):
        operated.kubectl("wait", f"configmap/{name}", f"--for={FENCED}", "--timeout=15s")
        assert operated.write(name, "bob").returncode == 1
    operated.kubectl("label", "configmap", "leaving", "app=db", "--overwrite", user="alice")
    until(lambda: not fenced(operated, "leaving"), "what left the selection is free")
    operated.kubectl("wait", "ast/vm-1", "--for=jsonpath={.status.fencedTargets}=2", "--timeout=10s")


def test_the_holder_may_change_what_is_selected(operated: Operated) -> None:
    make(operated, "web")
    make(operated, "db", app="db")
    select(operated)
    operated.cluster.kubectl("create", "clusterrole", f"{operated.namespace}-editor", "--verb=get,patch",
                             "--resource=assets.assetlock.dev")  # fmt: skip
    operated.kubectl(
        "create", "rolebinding", "editor", f"--clusterrole={operated.namespace}-editor", "--user=alice"
    )
    operated.held("first")
    target = {"apiVersion": "v1", "kind": "ConfigMap", "selector": {"matchLabels": {"app": "db"}}}
    patch = json.dumps({"spec": {"targets": [target]}})
    operated.kubectl("patch", "asset", "vm-1", "--type=merge", f"--patch={patch}", user="alice")
    until(lambda: fenced(operated, "db") and not fenced(operated, "web"), "the fence has moved")


def test_a_selector_that_selects_nothing_yet_is_locked_and_says_so(operated: Operated) -> None:
    select(operated)
    operated.held("first")
    assert condition(operated)["reason"] == "NothingSelected"
    assert "no ConfigMap is selected by app=web" in condition(operated)["message"]
    make(operated, "web", user="alice")
    operated.kubectl("wait", "configmap/web", f"--for={FENCED}", "--timeout=15s")
    assert operated.write("web", "bob").returncode == 1


def test_cluster_scoped_objects_are_selected_too(operated: Operated) -> None:
    role = f"{operated.namespace}-role"
    operated.cluster.kubectl("create", "clusterrole", role, "--verb=get", "--resource=pods")
    operated.cluster.kubectl("label", "clusterrole", role, f"app={operated.namespace}")
    select(operated, {"matchLabels": {"app": operated.namespace}}, kind="ClusterRole")
    operated.held("first")
    refused = operated.cluster.kubectl("label", "clusterrole", role, "more=1", check=False)
    assert f"ClusterRole {role} is locked" in refused.stderr
    operated.kubectl("delete", "alk", "first")
    until(
        lambda: "fenced" not in operated.cluster.kubectl("get", "clusterrole", role, "--show-labels").stdout,
        "unstamped",
    )


def test_more_objects_than_can_be_fenced_are_not_reported_as_locked(operated: Operated) -> None:
    many = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"web-{n}", "labels": {"app": "web"}}}
        for n in range(501)
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": many})
    operated.kubectl("create", "-f", "-", stdin=text)
    select(operated)
    operated.lock("first")
    settled = operated.settled("first")
    assert settled["reason"] == "NotFenceable"
    assert "501 ConfigMap objects are selected by app=web; at most 500" in settled["message"]
    assert not fenced(operated, "web-0")
    operated.kubectl("delete", "configmap", "web-500")
    operated.lock("second", wait="1m")
    operated.wait("alk/second", "condition=Acquired", timeout=60)
    assert operated.get("ast", "vm-1")["status"]["fencedTargets"] == 500


def test_we_select_what_the_api_server_selects(operated: Operated) -> None:
    draw = random.Random("selectors")
    keys, values = ["app", "example.com/tier", "team"], ["", "a", "b", "c.d_e-f"]
    objects = {
        f"object-{number}": {key: draw.choice(values) for key in keys if draw.random() < 0.7}
        for number in range(40)
    }
    items = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}
        for name, labels in objects.items()
    ]
    operated.kubectl(
        "create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    )
    for _ in range(40):
        selector = _drawn(draw, keys, values)
        listed = operated.kubectl("get", "configmaps", f"--selector={described(selector)}", "-o", "name")
        found = {line.removeprefix("configmap/") for line in listed.stdout.split()} - {"kube-root-ca.crt"}
        assert found == {name for name, labels in objects.items() if selects(selector, labels)}, selector


def _drawn(draw: random.Random, keys: list[str], values: list[str]) -> LabelSelector:
    requirements = []
    for key in draw.sample(keys, draw.randint(1, 2)):
        operator = draw.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        named = draw.sample(values, 2) if operator in ("In", "NotIn") else []
        requirements.append(Requirement(key=key, operator=operator, values=named))
    labels = {draw.choice(keys): draw.choice(values)} if draw.random() < 0.4 else {}
    return LabelSelector(match_labels=labels, match_expressions=requirements)
