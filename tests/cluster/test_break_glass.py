"""Breaking the glass: for whom it works, what is left of it to see, and that it needs nothing of ours."""

from __future__ import annotations

import datetime
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cluster.conftest import Operated, operator_in_a_cluster, until
from tests.cluster.stamping import ADMINS

from assetlock.cli.stack import Part, Stack
from assetlock.core import names
from assetlock.dev import ControlPlane
from assetlock.kube.api import Api
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from assetlock.kube.resources import ASSETS

AS_GROUP = (f"--as-group={names.BREAK_GLASS_GROUP}",)
GLASS = ("--as=carol", *AS_GROUP)


@pytest.fixture(scope="module")
def operator_cluster() -> Iterator[tuple[ControlPlane, Stack]]:
    """Not the one that other tests share: this one is stopped. Carol may impersonate herself in that group."""
    with operator_in_a_cluster() as (cluster, stack):
        rights = (("users", "carol"), ("groups", names.BREAK_GLASS_GROUP))
        for resource, name in rights:
            role = f"glass-{resource}"
            rule = ("--verb=impersonate", f"--resource={resource}", f"--resource-name={name}")
            cluster.kubectl("create", "clusterrole", role, *rule)
            cluster.kubectl("create", "clusterrolebinding", role, f"--clusterrole={role}", "--user=carol")
        yield cluster, stack


@pytest.fixture
def held(operated: Operated) -> Operated:
    """A ConfigMap that alice holds."""
    operated.asset("vm-1", "app")
    operated.held("first", ttl="1h")
    return operated


def label(operated: Operated, value: str, *impersonation: str, user: str, **more: Any) -> Any:
    where = ("-n", operated.namespace)
    change = ("label", "--overwrite", "configmap", "app", f"fixed={value}")
    return operated.cluster.kubectl(*change, *where, *impersonation, user=user, check=False, **more)


def broken(operated: Operated) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = operated.get("asset", "vm-1")["status"].get("brokenGlass", [])
    return shown


def test_it_is_shown_on_the_asset_told_and_counted(held: Operated) -> None:
    counted = _counted(held)
    assert label(held, "yes", *GLASS, user="carol").returncode == 0
    until(lambda: bool(broken(held)), "the Asset shows it")
    [entry] = broken(held)
    when = datetime.datetime.fromisoformat(entry.pop("time"))
    assert datetime.datetime.now(datetime.UTC) - when < datetime.timedelta(minutes=1)
    assert entry == {
        "identity": "carol",
        "operation": "UPDATE",
        "kind": "ConfigMap",
        "name": "app",
        "namespace": held.namespace,
    }
    assert _counted(held) == counted + 1
    notes = (
        "get",
        "events.events.k8s.io",
        "--field-selector=reason=BrokeGlass",
        "-o=jsonpath={.items[*].note}",
    )
    until(lambda: "carol wrote to ConfigMap app" in held.kubectl(*notes).stdout, "the Event")


def test_what_would_have_gone_through_anyway_breaks_nothing(held: Operated) -> None:
    counted = _counted(held)
    assert held.kubectl("label", "configmap", "app", "a=b", "--as=alice", *AS_GROUP).returncode == 0
    nothing = ("patch", "configmap", "app", "--type=merge", '--patch={"data":{"value":"0"}}')
    assert held.kubectl(*nothing, *GLASS, user="carol").returncode == 0
    assert held.kubectl("label", "configmap", "app", "c=d", "--dry-run=server", *GLASS, user="carol")
    assert _counted(held) == counted
    assert broken(held) == []


async def test_it_goes_from_the_asset_by_itself(held: Operated) -> None:
    ago = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=59, seconds=58)
    entry = {"identity": "carol", "operation": "DELETE", "kind": "Pod", "name": "gone"}
    status = {"brokenGlass": [{**entry, "time": ago.strftime("%Y-%m-%dT%H:%M:%SZ")}]}
    kubeconfig = held.cluster.kubeconfig_for(names.ADMISSION_USER, *ADMINS)
    api = Api(HttpTransport(load_config(kubeconfig)))
    try:
        version = held.get("asset", "vm-1")["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version}, "status": status}
        await api.merge_patch(ASSETS, held.namespace, "vm-1", patch, subresource="status")
    finally:
        await api.close()
    until(lambda: not broken(held), "its hour is over")


def test_with_everything_of_ours_down_the_group_alone_gets_through(held: Operated) -> None:
    held.stack.kill()
    try:
        assert label(held, "yes", *GLASS, user="carol").returncode == 0
        assert held.get("configmap", "app")["metadata"]["labels"]["fixed"] == "yes"
        for refused in _everybody_else(held):
            assert refused.returncode == 1, refused.args
            assert "orbidden" in refused.stderr
    finally:
        held.stack.restart()


def _everybody_else(held: Operated) -> list[subprocess.CompletedProcess[str]]:
    return [
        label(held, "no", user="carol"),
        label(held, "no", user="root", groups=ADMINS),
        label(held, "no", "--as=bob", *AS_GROUP, user="bob"),
        label(held, "no", "--as=carol", "--as-group=assetlock:break-glasses", user="root", groups=ADMINS),
    ]


def _counted(operated: Operated) -> float:
    url = operated.stack.url(Part.ADMISSION, "/metrics")
    with urllib.request.urlopen(url, context=ssl._create_unverified_context(), timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line for line in lines if line.startswith("assetlock_break_glass_total ")).split()[1])
