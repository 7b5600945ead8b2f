"""A real control plane, one a worker, and a namespace of its own for each test."""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from assetlock.dev import ControlPlane

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what runs in its background so, and every command that a test starts would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("any load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any load")


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Real etcd, kube-apiserver and kube-controller-manager; gone with the session, however it ends."""
    with ControlPlane() as running:
        yield running


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A fresh namespace in which pods may be created; deleted after the test."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    control_plane.kubectl("create", "namespace", name)
    control_plane.kubectl(
        "wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=30s"
    )
    yield name
    control_plane.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much was explored: whether tests that look at all there is still do shows in a number."""
    passed = terminalreporter.getreports("passed")
    told = [text for report in passed for name, text in report.user_properties if name == "explored"]
    if told:
        terminalreporter.section("explored")
        terminalreporter.write("\n".join([*sorted(map(str, set(told))), ""]))
