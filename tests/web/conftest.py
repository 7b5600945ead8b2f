"""The HTTP server as a process beside a real API server and the operator, and callers with tokens."""

from __future__ import annotations

import json
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cluster.conftest import Operated, operated, operator_cluster

__all__ = ["operated", "operator_cluster"]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: Any


@dataclass
class Caller:
    """Somebody who calls the HTTP API with a token, or without one."""

    base: str
    namespace: str
    token: str | None
    headers: dict[str, str] = field(default_factory=dict)

    def call(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Call a path below the namespace."""
        return self.raw(method, f"/api/v1/{self.namespace}/{path}", body, headers=headers)

    def raw(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> Answer:
        all_headers = {**self.headers, **(headers or {})}
        if self.token is not None:
            all_headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            all_headers["Content-Type"] = "application/json"
        request = urllib.request.Request(self.base + path, data, all_headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return Answer(answer.status, answer.headers, _parsed(answer.read()))
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, _parsed(error.read()))


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        return body.decode()


@dataclass
class World:
    """A namespace, the server, and ServiceAccounts in the namespace that may lock there."""

    operated: Operated
    base: str

    def caller(self, name: str, *rights: str) -> Caller:
        """A ServiceAccount of this name with the role `assetlock-user`, or with these ClusterRoles, and its token."""
        kubectl, namespace = self.operated.kubectl, self.operated.namespace
        kubectl("create", "serviceaccount", name)
        account = f"{namespace}:{name}"
        for role in rights or ("assetlock-user",):
            kubectl(
                "create",
                "rolebinding",
                f"{name}-{role}",
                f"--clusterrole={role}",
                f"--serviceaccount={account}",
            )
        token = kubectl("create", "token", name).stdout.strip()
        return Caller(self.base, namespace, token)

    def nobody(self, token: str | None = None) -> Caller:
        return Caller(self.base, self.operated.namespace, token)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def server(operator_cluster: Any) -> Iterator[str]:
    """The HTTP process under its own ServiceAccount; gives its address."""
    cluster, _ = operator_cluster
    namespace = "assetlock-system"
    kubeconfig = cluster.kubeconfig_for_service_account(namespace, "assetlock-http", duration="2h")
    base = f"http://127.0.0.1:{(port := _free_port())}"
    argv = [
        sys.executable,
        "-P",
        "-m",
        "assetlock.cli.main",
        "operator",
        "http",
        "--kubeconfig",
        str(kubeconfig),
    ]
    env = {"ASSETLOCK_HTTP_LONGEST_WAIT_SECONDS": "3", "ASSETLOCK_HTTP_RIGHTS_SECONDS": "1"}
    env |= {"ASSETLOCK_HTTP_REQUESTS_PER_SECOND": "1000", "ASSETLOCK_HTTP_BURST": "1000"}
    cluster.add_process(
        "http",
        [*argv, "--host", "127.0.0.1", "--port", str(port)],
        env=env,
        ready_url=f"{base}/readyz",
        restart=True,
    )
    yield base
    cluster.remove_process("http")


@pytest.fixture
def world(operated: Operated, server: str) -> World:
    return World(operated, server)
