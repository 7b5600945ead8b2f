"""An API server beside the real one, with a kind of its own, as metrics or custom APIs are served."""

from __future__ import annotations

import contextlib
import http.server
import json
import pathlib
import ssl
import threading
from collections.abc import Iterator
from typing import Any

from assetlock.dev import ControlPlane
from assetlock.dev.pki import Authority

GROUP = "elsewhere.example"
SERVICE = f"v1.{GROUP}"
THING = {"metadata": {"name": "thing", "uid": "thing", "resourceVersion": "1"}}
RESOURCES = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{GROUP}/v1",
    "resources": [
        {"name": "things", "kind": "Thing", "namespaced": True, "singularName": "", "verbs": ["list"]}
    ],
}


class _Handler(http.server.BaseHTTPRequestHandler):
    """Knows one object, ignores `dryRun`, and remembers who wanted to write."""

    writes: list[str]

    def do_GET(self) -> None:
        if "watch=true" in self.path:
            self._answer(None)
        elif "/things" in self.path:
            namespace = self.path.split("/")[5]
            thing = {"metadata": THING["metadata"] | {"namespace": namespace}}
            self._answer(
                {
                    "kind": "PartialObjectMetadataList",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": {"resourceVersion": "1"},
                    "items": [thing],
                }
            )
        else:
            self._answer(RESOURCES)

    def do_PATCH(self) -> None:
        self.writes.append(self.path)
        self._answer(THING)

    def _answer(self, body: dict[str, Any] | None) -> None:
        text = json.dumps(body).encode() if body is not None else b""
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def served(cluster: ControlPlane, folder: pathlib.Path) -> Iterator[list[str]]:
    """Serve things in the cluster; gives the paths of the writes that reach them."""
    Authority.new("elsewhere").server("elsewhere", ["localhost"]).save(folder, "elsewhere")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "elsewhere.crt", folder / "elsewhere.key")
    writes: list[str] = []
    handler = type("Handler", (_Handler,), {"writes": writes})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        _register(cluster, server.server_address[1])
        yield writes
    finally:
        cluster.kubectl("delete", "apiservice", SERVICE, check=False)
        cluster.kubectl("delete", "service", "elsewhere", check=False)
        server.shutdown()
        server.server_close()


def _register(cluster: ControlPlane, port: int) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "elsewhere", "namespace": "default"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    registration = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": SERVICE},
        "spec": {
            "group": GROUP,
            "version": "v1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 10,
            "insecureSkipTLSVerify": True,
            "service": {"name": "elsewhere", "namespace": "default", "port": port},
        },
    }
    for document in (service, registration):
        cluster.kubectl("create", "-f", "-", stdin=json.dumps(document))
    cluster.kubectl("wait", "--for=condition=Available", "apiservice", SERVICE, "--timeout=30s")
