"""Stands in for a node: starts the process of each pod as the pod says, probes it, and ends it gracefully.

What Kubernetes makes of the chart's Deployments and Jobs is real, but for the container: command and arguments, env,
probes, preStop and grace come from the pod; its address is one of the loopback range; its token is bound to it. A
small proxy forwards to pods that are ready, as a Service does. Not shown: the image, its user and its mounts.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import pathlib
import random
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from tests.chart.image import entrypoint

from assetlock.dev import ControlPlane
from assetlock.dev.children import dies_with_parent
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from assetlock.kube.transport import TransportError
from assetlock.model.times import format_time

NAME = "stand-in"
TICK = 0.2
HEARTBEAT = 50
"""Ticks between two of the node's own."""

Pod = dict[str, Any]


@dataclass
class Container:
    """A pod's one container, as a process."""

    name: str
    address: str
    folder: pathlib.Path
    process: subprocess.Popen[bytes] | None = None
    ready: bool = False
    failed_probes: int = 0
    restarts: int = 0
    ending: asyncio.Task[None] | None = None
    finished: bool = False


@dataclass
class Node:
    """The pods of one namespace, running."""

    cluster: ControlPlane
    namespace: str
    containers: dict[str, Container] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def logs(self) -> str:
        """What every process said."""
        files = sorted((self.cluster.folder / "pods").glob("*/log"))
        return "\n".join(f"== {path.parent.name}\n{path.read_text(errors='replace')}" for path in files)

    def ready(self, component: str) -> list[Container]:
        """The containers of a Deployment that are ready and do not end."""
        return [
            one
            for one in self.containers.values()
            if one.ready and one.ending is None and one.name.startswith(f"assetlock-{component}-")
        ]

    async def run(self, stop: asyncio.Event) -> None:
        """Do what a kubelet does, until told to stop."""
        self._transport = HttpTransport(load_config(self.cluster.kubeconfig, environ={}))
        self._session = aiohttp.ClientSession()
        self._network = f"127.{random.randrange(64, 128)}.{random.randrange(256)}"
        try:
            await self._send("POST", "/api/v1/nodes", {"kind": "Node", "metadata": {"name": NAME}})
            for tick in range(10**9):
                if stop.is_set():
                    return
                if tick % HEARTBEAT == 0:
                    await self._beat()
                with contextlib.suppress(TransportError):
                    await self._round()
                await asyncio.sleep(TICK)
        finally:
            for one in self.containers.values():
                if one.process is not None:
                    one.process.kill()
            await self._session.close()
            await self._transport.close()

    async def _round(self) -> None:
        pods = (await self._send("GET", self._pods()))["items"]
        present = {pod["metadata"]["uid"]: pod for pod in pods}
        for uid in self.containers.keys() - present.keys():
            self._end_at_once(self.containers.pop(uid))
        await asyncio.gather(*(self._look_after(uid, pod) for uid, pod in present.items()))

    async def _look_after(self, uid: str, pod: Pod) -> None:
        one = self.containers.get(uid)
        if one is None and "deletionTimestamp" not in pod["metadata"]:
            await self._start(uid, pod)
        elif one is None or one.ending is not None or one.finished:
            return
        elif "deletionTimestamp" in pod["metadata"]:
            one.ready = False
            one.ending = asyncio.create_task(self._end(one, pod))
        elif one.process is not None and one.process.poll() is not None:
            await self._ended(one, pod, one.process.returncode)
        else:
            await self._probe(one, pod)
            if one.ready != is_ready(pod):
                await self._report(one, "Running")

    async def _start(self, uid: str, pod: Pod) -> None:
        name = pod["metadata"]["name"]
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": NAME}}
        await self._send("POST", f"{self._pods(name)}/binding", {"kind": "Binding", **binding})
        folder = self.cluster.folder / "pods" / name
        (folder / "tmp").mkdir(parents=True)
        one = Container(name, f"{self._network}.{len(self.containers) + 2}", folder)
        self.containers[uid] = one
        await self._run_process(one, pod)
        await self._report(one, "Running")

    async def _run_process(self, one: Container, pod: Pod) -> None:
        [container] = pod["spec"]["containers"]
        account, namespace = pod["spec"]["serviceAccountName"], self.namespace
        kubeconfig = await asyncio.to_thread(
            self.cluster.kubeconfig_for_service_account, namespace, account, pod=one.name
        )
        self._launch(one, container, kubeconfig, environment(container, pod, one.address))

    def _launch(
        self, one: Container, container: dict[str, Any], kubeconfig: pathlib.Path, env: dict[str, str]
    ) -> None:
        with (one.folder / "log").open("ab") as log:
            one.process = subprocess.Popen(
                command(container, env),
                env={"KUBECONFIG": str(kubeconfig), "TMPDIR": str(one.folder / "tmp"), **env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dies_with_parent(),
            )

    async def _probe(self, one: Container, pod: Pod) -> None:
        """Ready with the first answer, and until as many probes in a row have failed as the pod says."""
        [container] = pod["spec"]["containers"]
        probe = container.get("readinessProbe")
        if probe is None or await self._answers(one, container, probe):
            one.ready, one.failed_probes = True, 0
            return
        one.failed_probes += 1
        one.ready = one.ready and one.failed_probes < probe["failureThreshold"]

    async def _answers(self, one: Container, container: dict[str, Any], probe: dict[str, Any]) -> bool:
        get = probe["httpGet"]
        [port] = [port["containerPort"] for port in container["ports"] if port["name"] == get["port"]]
        url = f"{get.get('scheme', 'HTTP').lower()}://{one.address}:{port}{get['path']}"
        limit = aiohttp.ClientTimeout(total=probe["timeoutSeconds"])
        try:
            async with self._session.get(url, ssl=_anybody(), timeout=limit) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    async def _ended(self, one: Container, pod: Pod, status: int) -> None:
        if pod["spec"]["restartPolicy"] == "Always":
            self.failures.append(f"{one.name} ended with {status}")
            one.ready, one.restarts = False, one.restarts + 1
            await self._run_process(one, pod)
            return
        one.finished = True
        await self._report(one, "Failed" if status else "Succeeded")

    async def _end(self, one: Container, pod: Pod) -> None:
        [container] = pod["spec"]["containers"]
        pause = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        await asyncio.sleep(pause)
        process = one.process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            grace = pod["metadata"]["deletionGracePeriodSeconds"] - pause
            try:
                await asyncio.wait_for(asyncio.to_thread(process.wait), grace)
            except TimeoutError:
                self.failures.append(f"{one.name} did not end within {grace} s")
                process.kill()
        with contextlib.suppress(TransportError):
            await self._send("DELETE", self._pods(one.name), {"gracePeriodSeconds": 0})
            return
        one.ending = None

    def _end_at_once(self, one: Container) -> None:
        if one.process is not None and one.process.poll() is None and one.ending is None:
            one.process.kill()

    async def _report(self, one: Container, phase: str) -> None:
        ready = "True" if one.ready else "False"
        conditions = [{"type": kind, "status": ready} for kind in ("Ready", "ContainersReady")]
        status: dict[str, Any] = {
            "phase": phase,
            "podIP": one.address,
            "podIPs": [{"ip": one.address}],
            "startTime": format_time(datetime.datetime.now(datetime.UTC)),
            "conditions": [*conditions, {"type": "PodScheduled", "status": "True"}],
        }
        await self._send("PATCH", f"{self._pods(one.name)}/status", {"status": status})

    async def _beat(self) -> None:
        now = format_time(datetime.datetime.now(datetime.UTC))
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now}
        await self._send("PATCH", f"/api/v1/nodes/{NAME}/status", {"status": {"conditions": [condition]}})

    def _pods(self, name: str = "") -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods" + (f"/{name}" if name else "")

    async def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        kind = "application/strategic-merge-patch+json" if method == "PATCH" else "application/json"
        reply = await self._transport.request(
            method,
            path,
            params={},
            headers={"content-type": kind, "accept": "application/json"},
            body=None if body is None else json.dumps({"apiVersion": "v1", **body}).encode(),
            timeout=30,
        )
        assert reply.status < 300 or reply.status in (404, 409), (method, path, reply.status, reply.body)
        return json.loads(reply.body)


def is_ready(pod: Pod) -> bool:
    """What the API server has of it: others may have changed that, when the node was late."""
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def command(container: dict[str, Any], env: dict[str, str]) -> list[str]:
    """The image's entry point in this checkout, or the container's own command; and its arguments."""
    argv = container.get("command") or entrypoint()
    program = pathlib.Path(sys.executable).with_name(pathlib.Path(argv[0]).name)
    return [str(program), *argv[1:], *(_expanded(argument, env) for argument in container.get("args", []))]


def environment(container: dict[str, Any], pod: Pod, address: str) -> dict[str, str]:
    """The variables that Kubernetes would set."""
    metadata = {f"metadata.{name}": pod["metadata"][name] for name in ("name", "namespace", "uid")}
    fields = {**metadata, "spec.nodeName": NAME, "status.podIP": address}
    found: dict[str, str] = {}
    for variable in container.get("env", []):
        if "valueFrom" in variable:
            found[variable["name"]] = fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        else:
            found[variable["name"]] = _expanded(variable.get("value", ""), found)
    return found


def _expanded(text: str, env: dict[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda match: env.get(match[1], match[0]), text)


def _anybody() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@contextlib.asynccontextmanager
async def proxy(node: Node, port: int, target: int) -> Any:
    """What kube-proxy does for the Service of the webhooks."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ready = node.ready("admission")
        random.shuffle(ready)
        try:
            for one in ready:
                with contextlib.suppress(OSError):
                    there = await asyncio.open_connection(one.address, target)
                    await _pipe((reader, writer), there)
                    return
        finally:
            writer.close()

    server = await asyncio.start_server(forward, "127.0.0.1", port)
    async with server:
        yield


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _pipe(here: Stream, there: Stream) -> None:
    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(65536):
                writer.write(chunk)
                await writer.drain()
        writer.close()

    await asyncio.gather(copy(here[0], there[1]), copy(there[0], here[1]))


@contextlib.contextmanager
def running(cluster: ControlPlane, namespace: str, port: int, target: int) -> Iterator[Node]:
    """A node for the pods of this namespace, and the way from `port` to `target` of the admission pods."""
    node = Node(cluster, namespace)
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def main() -> None:
        async with proxy(node, port, target):
            await node.run(ended)

    def work() -> None:
        try:
            loop.run_until_complete(main())
        except Exception as error:
            node.failures.append(f"the node failed: {error!r}")
            raise
        finally:
            loop.close()

    thread = threading.Thread(target=work, name="node")
    thread.start()
    try:
        yield node
    finally:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)
        thread.join(30)
        shutil.rmtree(cluster.folder / "pods", ignore_errors=True)
