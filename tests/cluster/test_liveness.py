"""The operator goes on, and what is stuck holds up nobody else: webhooks that hang, answers that are wrong."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import signal
import socket
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiohttp import web
from tests.cluster.conftest import BREAK_GLASS, Operated, document, grant_rights, lease, until
from tests.cluster.meddler import Meddler

from assetlock.cli import stack as operator_stack
from assetlock.cli.stack import Part
from assetlock.core import names
from assetlock.dev import ControlPlane

LEADER = "/leases/assetlock-controller"
SHORT = {
    "ASSETLOCK_LEASE_DURATION": "10s",
    "ASSETLOCK_RENEW_DEADLINE": "8s",
    "ASSETLOCK_RETRY_PERIOD": "1s",
}


@pytest.fixture(scope="module")
def meddler() -> Iterator[Meddler]:
    yield Meddler()


@pytest.fixture(scope="module")
def operator_cluster(meddler: Meddler) -> Iterator[tuple[ControlPlane, operator_stack.Stack]]:
    """One whose controller reaches the API server by way of the meddler."""
    with ControlPlane() as cluster, meddler.serving(cluster.kubeconfig):
        stack = operator_stack.start(cluster, env=SHORT)
        grant_rights(cluster)
        _send_by_way_of(meddler, cluster, stack)
        yield cluster, stack


def _send_by_way_of(meddler: Meddler, cluster: ControlPlane, stack: operator_stack.Stack) -> None:
    path = cluster.kubeconfig_for_service_account(names.OPERATOR_NAMESPACE, "assetlock-controller")
    config = json.loads(path.read_text())
    config["clusters"][0]["cluster"] = {"server": meddler.url}
    through = path.with_name("meddled.kubeconfig")
    through.write_text(json.dumps(config))
    cluster.remove_process(Part.CONTROLLER)
    argv = [sys.executable, "-P", "-m", "assetlock.cli.main", "operator", "controller"]
    env = {"ASSETLOCK_HEALTH_HOST": operator_stack.HOST, **stack.env}
    env["ASSETLOCK_HEALTH_PORT"] = str(stack.ports[Part.CONTROLLER])
    stack.running[Part.CONTROLLER] = cluster.add_process(
        Part.CONTROLLER,
        [*argv, "--kubeconfig", str(through)],
        env=env,
        ready_url=stack.url(Part.CONTROLLER, "/readyz"),
    )
    stack.wait_until_serving()


@pytest.fixture
def beside(operated: Operated) -> Iterator[Operated]:
    """Another namespace, whose people have nothing to do with the first."""
    namespace = f"t-{uuid.uuid4().hex[:10]}"
    operated.cluster.kubectl("create", "namespace", namespace)
    yield Operated(operated.cluster, operated.stack, namespace)
    command = ("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")
    operated.cluster.kubectl(*command, user="root", groups=BREAK_GLASS)


@pytest.fixture(autouse=True)
def _goes_on(operator_cluster: tuple[ControlPlane, operator_stack.Stack]) -> Iterator[None]:
    """Whatever happens, the controller that was there at the beginning is there at the end, and serves."""
    _, stack = operator_cluster
    controller = stack.running[Part.CONTROLLER].pid
    yield
    os.kill(controller, 0)
    assert _readyz(stack) == "leading"


def _readyz(stack: operator_stack.Stack) -> str:
    with urllib.request.urlopen(stack.url(Part.CONTROLLER, "/readyz"), timeout=5) as answer:
        return str(answer.read().decode())


def metric(operated: Operated, name: str, *labels: str) -> float:
    """The sum of a metric's values, of those with these labels."""
    with urllib.request.urlopen(operated.stack.url(Part.CONTROLLER, "/metrics"), timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    mine = [line for line in lines if line.startswith(f"assetlock_controller_{name}")]
    return sum(float(line.rpartition(" ")[2]) for line in mine if all(label in line for label in labels))


def leaderships(operated: Operated) -> int:
    return operated.stack.running[Part.CONTROLLER].log.read_text().count('"message": "leading"')


def make_assets(operated: Operated, *many: str) -> None:
    """An asset of each name, with a ConfigMap of that name as its target."""
    targets = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name} for name in many]
    operated.create(*({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in many))
    operated.create(*(document("Asset", t["name"], {"type": "VM", "targets": [t]}) for t in targets))


@contextmanager
def webhook(operated: Operated, url: str, timeout: int = 5) -> Iterator[None]:
    """Somebody's, which must agree to each change of a ConfigMap in the namespace."""
    name = f"theirs-{operated.namespace}"
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": "theirs.example.com",
                "clientConfig": {"url": url},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "resources": ["configmaps"],
                        "operations": ["UPDATE"],
                    }
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": operated.namespace}},
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "timeoutSeconds": timeout,
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
    operated.cluster.kubectl("create", "-f", "-", stdin=json.dumps(body))
    try:
        until(lambda: _asks(operated), "the webhook is asked")
        yield
    finally:
        operated.cluster.kubectl("delete", "validatingwebhookconfiguration", name)


def _asks(operated: Operated) -> bool:
    """Whether the API server knows of the webhook by now."""
    patch = (
        "patch",
        "configmap",
        "probe",
        "--type=merge",
        '--patch={"data":{"a":"b"}}',
        "--request-timeout=1s",
    )
    return bool(operated.kubectl(*patch, check=False).returncode)


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        yield f"https://127.0.0.1:{server.getsockname()[1]}/"


@pytest.fixture
def refusing() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"https://127.0.0.1:{server.getsockname()[1]}/"


def test_a_webhook_that_hangs_in_one_namespace_is_not_felt_in_another(
    operated: Operated, beside: Operated, silent: str
) -> None:
    slow, fast = operated, beside
    slow.kubectl("create", "configmap", "probe")
    names_of = [f"vm-{number}" for number in range(16)]
    make_assets(slow, *names_of)
    fast.asset("vm-1", "app")
    fast.wait("ast/vm-1", "condition=Fenced")
    with webhook(slow, silent):
        slow.create(*(document("AssetLock", name, {"assetName": name, "wait": "1h"}) for name in names_of))
        for round_ in range(3):
            fast.lock(f"lock-{round_}")
            fast.wait(f"alk/lock-{round_}", "condition=Acquired", timeout=5)
            fast.kubectl("delete", "alk", f"lock-{round_}")
        slow.kubectl("wait", "alk", "--all", "--for=jsonpath={.status.state}=Pending", "--timeout=10s")
        assert slow.condition("vm-3")["reason"] in ("NoAnswerYet", "WriteFailed")
    slow.kubectl("wait", "alk", "--all", "--for=condition=Acquired", "--timeout=30s")


def test_a_webhook_that_refuses_connections_is_asked_with_growing_pauses(
    operated: Operated, refusing: str
) -> None:
    operated.kubectl("create", "configmap", "probe")
    operated.asset("vm-1", "app")
    operated.wait("ast/vm-1", "condition=Fenced")
    with webhook(operated, refusing):
        before = metric(operated, "failed_writes_total", "PatchTarget")
        operated.lock("waits", wait="4s")
        operated.kubectl("wait", "alk/waits", "--for=jsonpath={.status.state}=Pending", "--timeout=5s")
        until(
            lambda: operated.condition("waits", "Acquired")["reason"] == "WriteFailed",
            "the condition says what fails",
        )
        message = operated.condition("waits", "Acquired")["message"]
        assert "ConfigMap app can't be written" in message
        assert "connection refused" in message
        ready = operated.get("ast", "vm-1")["status"]["conditions"]
        assert [c["reason"] for c in ready if c["type"] == "Ready"] == ["WriteFailed"]
        assert operated.settled("waits")["reason"] == "WaitTimeout"
        assert metric(operated, "failed_writes_total", "PatchTarget") - before < 12


def test_a_lock_whose_lease_can_not_be_made_says_why_and_keeps_its_wait(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.wait("ast/vm-1", "condition=Fenced")
    operated.kubectl("create", "quota", "none", "--hard=count/leases.coordination.k8s.io=0")
    until(lambda: "used" in operated.get("quota", "none").get("status", {}), "the quota is in force")
    operated.lock("now")
    operated.lock("soon", wait="2s")
    operated.lock("later", wait="1h")
    assert operated.settled("now")["reason"] == "WriteFailed"
    assert "exceeded quota" in operated.condition("now")["message"]
    operated.wait("alk/later", "jsonpath={.status.state}=Pending")
    assert "exceeded quota" in operated.condition("soon", "Acquired")["message"]
    assert operated.settled("soon")["reason"] == "WaitTimeout"
    operated.kubectl("delete", "quota", "none")
    operated.wait("alk/later", "condition=Acquired")
    assert operated.get("alk", "now")["status"]["state"] == "Failed"


def test_a_lease_of_that_name_without_our_label_is_named_as_what_is_in_the_way(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.wait("ast/vm-1", "condition=Fenced")
    squatter = lease("vm-1")
    del squatter["metadata"]["labels"]
    operated.create(squatter)
    operated.lock("now")
    operated.lock("soon", wait="2s")
    assert operated.settled("now")["reason"] == "WriteFailed"
    assert "asset.vm-1" in operated.condition("now")["message"]
    assert operated.settled("soon")["reason"] == "WaitTimeout"
    operated.kubectl("delete", "lease", "asset.vm-1")


def test_one_lease_that_may_not_be_written_hides_nothing_else_of_its_asset(operated: Operated) -> None:
    for number in (0, 1):
        operated.asset(f"v{number}", f"app-{number}")
    operated.lock("both", assetNames=["v0", "v1"], assetName=None)
    operated.wait("alk/both", "condition=Acquired")
    with no_change_of_lease(operated, "asset.v1"):
        operated.kubectl("delete", "alk", "both")
        operated.lock("now", asset="v1")
        operated.lock("soon", asset="v1", wait="2s")
        assert operated.settled("now")["reason"] == "WriteFailed"
        assert operated.settled("soon")["reason"] == "WaitTimeout"
        conditions = operated.get("ast", "v1")["status"]["conditions"]
        (ready,) = (c for c in conditions if c["type"] == "Ready")
        assert ready["status"] == "False"
        assert "let it be" in ready["message"]
        operated.lock("other", asset="v0")
        operated.wait("alk/other", "condition=Acquired")
    operated.lock("after", asset="v1", wait="1m")
    operated.wait("alk/after", "condition=Acquired")


@contextmanager
def no_change_of_lease(operated: Operated, name: str) -> Iterator[None]:
    """Somebody's policy against any change of one Lease."""
    policy = f"theirs-{operated.namespace}"
    rule = {
        "apiGroups": ["coordination.k8s.io"],
        "apiVersions": ["v1"],
        "resources": ["leases"],
        "operations": ["UPDATE", "DELETE"],
        "resourceNames": [name],
    }
    where = {"matchLabels": {"kubernetes.io/metadata.name": operated.namespace}}
    group = "admissionregistration.k8s.io/v1"
    bodies = [
        {
            "apiVersion": group,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": policy},
            "spec": {
                "matchConstraints": {"resourceRules": [rule], "namespaceSelector": where},
                "validations": [{"expression": "false", "message": "let it be"}],
            },
        },
        {
            "apiVersion": group,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": policy},
            "spec": {"policyName": policy, "validationActions": ["Deny"]},
        },
    ]
    for body in bodies:
        operated.cluster.kubectl("create", "-f", "-", stdin=json.dumps(body))
    dry = ("annotate", "lease", name, "a=b", "--dry-run=server", "--overwrite")
    until(lambda: "let it be" in operated.kubectl(*dry, check=False).stderr, "the policy is in force")
    try:
        yield
    finally:
        for body in reversed(bodies):
            operated.cluster.kubectl("delete", str(body["kind"]), policy)


def test_whoever_is_told_to_come_later_keeps_no_worker_from_the_others(
    operated: Operated, meddler: Meddler
) -> None:
    count = 30
    make_assets(operated, *(f"vm-{number}" for number in range(count)))
    operated.kubectl("create", "secret", "generic", "password")
    secret = {"apiVersion": "v1", "kind": "Secret", "name": "password"}
    operated.create(document("Asset", "secret", {"type": "VM", "targets": [secret]}))
    operated.wait("ast/secret", "condition=Fenced")
    operated.kubectl("wait", "ast", "--all", "--for=condition=Fenced", "--timeout=30s")

    async def later(_: web.Request) -> web.Response:
        body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429, "message": "too many"}
        return web.json_response(body, status=429, headers={"retry-after": "5"})

    throttled = meddler.always(lambda r: r.method == "PATCH" and "/configmaps/" in r.path, later)
    with meddler.meddling(throttled):
        operated.create(
            *(document("AssetLock", f"l{n}", {"assetName": f"vm-{n}", "wait": "1h"}) for n in range(count))
        )
        operated.kubectl("wait", "alk", "--all", "--for=jsonpath={.status.state}=Pending", "--timeout=15s")
        operated.lock("on-secret", asset="secret")
        operated.wait("alk/on-secret", "condition=Acquired", timeout=5)
    operated.kubectl("wait", "alk", "--all", "--for=condition=Acquired", "--timeout=30s")


def test_a_renewal_that_is_never_answered_costs_no_leadership(operated: Operated, meddler: Meddler) -> None:
    before = leaderships(operated)

    async def never(_: web.Request) -> web.Response:
        await asyncio.sleep(60)
        raise AssertionError("nobody waits for so long")

    with meddler.meddling(meddler.once(lambda r: r.method == "PUT" and LEADER in r.path, never)):
        until(lambda: meddler.met == 1, "a renewal was swallowed")
        operated.asset("vm-1", "app")
        operated.held("first")
        until(lambda: not _is_stale(operated), "the Lease is renewed again")
    assert leaderships(operated) == before


def _is_stale(operated: Operated) -> bool:
    def version() -> str:
        done = operated.cluster.kubectl(
            "get", "lease", "assetlock-controller", "-n", names.OPERATOR_NAMESPACE, "-o", "json"
        )
        return str(json.loads(done.stdout)["metadata"]["resourceVersion"])

    first = version()
    time.sleep(2)
    return version() == first


def _error_event(_: web.Request) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "message": "oops"}
    return web.Response(
        text=json.dumps({"type": "ERROR", "object": status}) + "\n", content_type="application/json"
    )


def _page(_: web.Request) -> web.Response:
    return web.Response(text="<html>please log in</html>", content_type="text/html")


def _too_large(_: web.Request) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 504, "message": "too large"}
    return web.json_response(status, status=504)


@pytest.mark.parametrize("answer", [_error_event, _page, _too_large])
def test_a_watch_that_is_answered_with_nonsense_is_begun_again(
    operated: Operated, meddler: Meddler, answer: Any
) -> None:
    operated.asset("vm-1", "app")

    async def given(request: web.Request) -> web.Response:
        return answer(request)

    def is_watch(request: web.Request) -> bool:
        return request.path.endswith("/assetlocks") and "watch" in request.query

    controller = operated.stack.running[Part.CONTROLLER].pid
    _cut_watches(operated, meddler, is_watch, given)
    operated.held("first")
    os.kill(controller, 0)


def _cut_watches(operated: Operated, meddler: Meddler, matches: Any, answer: Any) -> None:
    """Break the watches, and answer the next three attempts in that way."""
    with meddler.meddling(meddler.always(lambda r: matches(r) and meddler.met < 3, answer)):
        meddler.cut()
        until(lambda: meddler.met >= 3, "the watch was asked for three times", seconds=30)
    until(lambda: metric(operated, "watch_age_seconds", '"assetlocks"') < 60, "the watch is heard again")


def test_a_controller_that_gets_a_twentieth_of_a_core_goes_on(operated: Operated) -> None:
    operated.asset("vm-1", "app")
    operated.wait("ast/vm-1", "condition=Fenced")
    before, controller = leaderships(operated), operated.stack.running[Part.CONTROLLER].pid
    with held_to(controller, share=0.05):
        operated.held("first", ttl="2s", extendOnWrite=False)
        operated.lock("second", "bob", wait="1h")
        operated.wait("alk/second", "condition=Acquired", timeout=30)
    assert leaderships(operated) == before


@contextmanager
def held_to(process: int, *, share: float) -> Iterator[None]:
    """Let a process have this share of a core: stop it whenever it has used it up, and continue it later."""
    ends = threading.Event()

    def hold() -> None:
        began, used = time.monotonic(), _cpu_seconds(process)
        while not ends.is_set():
            is_over = _cpu_seconds(process) - used > share * (time.monotonic() - began)
            os.kill(process, signal.SIGSTOP if is_over else signal.SIGCONT)
            time.sleep(0.01)
        os.kill(process, signal.SIGCONT)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        yield
    finally:
        ends.set()
        holder.join()


def _cpu_seconds(process: int) -> float:
    threads = pathlib.Path(f"/proc/{process}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def test_an_api_server_that_answers_three_seconds_late_costs_no_leadership(
    operated: Operated, meddler: Meddler
) -> None:
    operated.asset("vm-1", "app")
    operated.wait("ast/vm-1", "condition=Fenced")
    before = leaderships(operated)

    async def late(_: web.Request) -> None:
        await asyncio.sleep(3)

    with meddler.meddling(meddler.always(lambda r: "watch" not in r.query, late)):
        operated.lock("first", wait="1h")
        until(lambda: meddler.met > 6, "some answers were late")
    operated.wait("alk/first", "condition=Acquired")
    assert leaderships(operated) == before


def test_the_definitions_may_go_and_come_again(operated: Operated) -> None:
    """Last: it takes everything of ours along."""
    kubectl = operated.cluster.kubectl
    folder = pathlib.Path(__file__).parents[2] / "crds"
    kubectl("delete", "-f", str(folder), "--wait=true", "--timeout=30s")
    time.sleep(3)  # so that watching fails a few times
    kubectl("apply", "--server-side", "-f", str(folder))
    crds = [path.name.removesuffix(".yaml") for path in folder.glob("*.yaml")]
    kubectl(
        "wait",
        *(f"crd/{name}.{names.GROUP}" for name in crds),
        "--for=condition=Established",
        "--timeout=20s",
    )
    until(lambda: metric(operated, "watch_age_seconds", '"assetlocks"') < 30, "watched again")
    operated.asset("vm-1", "app")
    operated.held("first")
    operated.kubectl("delete", "alk", "first")
    before = metric(operated, "watch_restarts_total")
    for number in range(3):
        operated.lock(f"l{number}", wait="1h")
        operated.wait(f"alk/l{number}", "condition=Acquired", timeout=5)
        operated.kubectl("delete", "alk", f"l{number}")
    assert metric(operated, "watch_restarts_total") == before
