"""A control plane and the whole operator, each a process to be hurt, with a proxy between each two that talk.

Unlike `assetlock.dev` it does not end when one of its processes does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from assetlock.core import names
from assetlock.dev import children, components, pki, probe
from assetlock.dev.access import Access
from assetlock.dev.binaries import Binaries
from assetlock.dev.children import Child
from assetlock.dev.errors import StartFailed
from assetlock.dev.provision import provide
from assetlock.install import install
from assetlock.kube.api import Api
from assetlock.kube.config import load_config
from assetlock.kube.http import HttpTransport
from tests.chaos.proxy import LOOPBACK, Proxy

CONTROLLERS = ("controller-1", "controller-2")
OPERATOR = (*CONTROLLERS, "admission")
PROCESSES = ("etcd", "kube-apiserver", "kube-controller-manager", *OPERATOR)
PAIRS = (
    "kube-apiserver to etcd",
    "kube-apiserver to admission",
    "admission to kube-apiserver",
    "controller-1 to kube-apiserver",
    "controller-2 to kube-apiserver",
    "kube-controller-manager to kube-apiserver",
    "clients to kube-apiserver",
)
LOGS = pathlib.Path(__file__).parents[2] / "build" / "chaos-logs"
"""Where the logs of the last run are kept."""

ELECTIONS = {
    "ASSETLOCK_LEASE_DURATION": "3s",
    "ASSETLOCK_RENEW_DEADLINE": "2s",
    "ASSETLOCK_RETRY_PERIOD": "500ms",
}
"""Short, so that whatever happens to a leader has consequences."""

_READY_WITHIN = 60.0


@dataclass
class Program:
    """How a process is started, and where it says that it is ready."""

    argv: list[str]
    env: Mapping[str, str]
    ready_url: str | None


@dataclass
class Cluster:
    """All processes and ways."""

    folder: pathlib.Path
    binaries: Binaries
    ports: dict[str, int]
    proxies: dict[str, Proxy]
    controllers: tuple[str, ...] = CONTROLLERS
    programs: dict[str, Program] = field(default_factory=dict)
    running: dict[str, Child] = field(default_factory=dict)
    killed: set[str] = field(default_factory=set)

    @property
    def access(self) -> Access:
        """The way in for who prepares and looks after things, without a proxy."""
        return Access(
            self.folder, f"https://{LOOPBACK}:{self.ports['kube-apiserver']}", self.binaries.kubectl
        )

    def kubeconfig(self, path: pathlib.Path, pair: str) -> pathlib.Path:
        """The same kubeconfig, by way of a proxy."""
        through = path.with_name(f"{pair.partition(' ')[0]}.{path.name}")
        through.write_text(path.read_text().replace(self.access.server, self.proxies[pair].url))
        return through

    async def start(self, name: str) -> None:
        """Start a process (again), and return when it is ready."""
        child = await self._launch(name)
        if url := self.programs[name].ready_url:
            await probe.until_ready(child, url, probe.trusting_anybody(), _READY_WITHIN)

    async def start_if_it_can(self, name: str) -> None:
        """Start it; one that ends at once, as something it needs is still amiss, is started again by and by."""
        with contextlib.suppress(StartFailed):
            await self.start(name)

    async def _launch(self, name: str) -> Child:
        program = self.programs[name]
        self.running[name] = await children.start(name, program.argv, self.folder / "logs", env=program.env)
        self.killed.discard(name)
        return self.running[name]

    async def kill(self, name: str) -> None:
        """End a process with SIGKILL; it stays away until it is started."""
        self.killed.add(name)
        await self.running[name].stop(0)

    async def keep(self) -> None:
        """Start again, as a kubelet would, what has ended by itself."""
        while True:
            await asyncio.sleep(0.5)
            for name, child in self.running.items():
                if not child.running and name not in self.killed:
                    await self._launch(name)

    def suspend(self, name: str) -> None:
        """Stop a process where it is."""
        os.kill(self.running[name].process.pid, signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let it go on."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.running[name].process.pid, signal.SIGCONT)

    def operator(self, part: str, *, skew: float = 0.0) -> Program:
        """How one of the operator's processes is started, on a machine whose clock is off by ``skew`` seconds."""
        kind = part.partition("-")[0]
        kubeconfig = self._with_token_file(part, f"assetlock-{kind}")
        module = ["tests.chaos.skewed", str(skew)] if skew else ["assetlock.cli.main"]
        argv = [sys.executable, "-m", *module, "operator", kind, "--kubeconfig", str(kubeconfig)]
        port = self.ports[part]
        if kind == "admission":
            argv += ["--host", LOOPBACK, "--port", str(port)]
            return Program(argv, {}, f"https://{LOOPBACK}:{port}/readyz")
        env = {"ASSETLOCK_HEALTH_HOST": LOOPBACK, "ASSETLOCK_HEALTH_PORT": str(port), **ELECTIONS}
        return Program(argv, env, f"http://{LOOPBACK}:{port}/readyz")

    def _with_token_file(self, part: str, account: str) -> pathlib.Path:
        """A kubeconfig as in a pod: the token stands in a file, which is kept fresh by somebody else."""
        path = self.kubeconfig(
            self.access.kubeconfig_for_service_account(names.OPERATOR_NAMESPACE, account),
            f"{part} to kube-apiserver",
        )
        config = json.loads(path.read_text())
        user = config["users"][0]["user"]
        self.token_file(part).write_text(user.pop("token"))
        user["tokenFile"] = str(self.token_file(part))
        path.write_text(json.dumps(config))
        return path

    def token_file(self, part: str) -> pathlib.Path:
        """Where one of the operator's processes reads its token."""
        return self.folder / f"{part}.token"

    async def begin(self) -> None:
        """Start everything, the operator installed."""
        pki.create(self.folder / "pki")
        (self.folder / "logs").mkdir()
        for proxy in self.proxies.values():
            await proxy.start()
        self.access.write_system_kubeconfigs()
        self._prepare_control_plane()
        await self.start("etcd")
        await self.start("kube-apiserver")
        await self.start("kube-controller-manager")
        api = Api(HttpTransport(load_config(self.access.kubeconfig)))
        try:
            await install(api, webhook_url=self.proxies["kube-apiserver to admission"].url)
        finally:
            await api.close()
        for part in (*self.controllers, "admission"):
            self.programs[part] = await asyncio.to_thread(self.operator, part)
            await self.start(part)

    def _prepare_control_plane(self) -> None:
        ports = components.Ports(self.ports["etcd"], self.ports["etcd peer"], self.ports["kube-apiserver"])
        argv = components.etcd(self.binaries, self.folder, ports, durable=True)
        self.programs["etcd"] = Program(argv, {}, None)
        to_etcd = self.proxies["kube-apiserver to etcd"].port
        argv = components.apiserver(
            self.binaries, self.folder, components.Ports(to_etcd, ports.etcd_peer, ports.apiserver)
        )
        argv += ["--etcd-compaction-interval=0", "--storage-media-type=application/json"]
        self.programs["kube-apiserver"] = Program(argv, {}, f"https://{LOOPBACK}:{ports.apiserver}/readyz")

        own = self.folder / "controller-manager.kubeconfig"
        through = self.kubeconfig(own, "kube-controller-manager to kube-apiserver")
        argv = [*components.controller_manager(self.binaries, self.folder), f"--kubeconfig={through}"]
        self.programs["kube-controller-manager"] = Program(argv, {}, None)

    async def end(self) -> None:
        """Stop everything."""
        for proxy in self.proxies.values():
            await proxy.stop()
        await asyncio.gather(*(child.stop(0) for child in self.running.values()))


@contextlib.asynccontextmanager
async def cluster(controllers: tuple[str, ...] = CONTROLLERS) -> AsyncIterator[Cluster]:
    """A cluster for as long as the block lasts."""
    binaries = provide(print)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="assetlock-chaos-"))
    free = iter(_free_ports(len(PROCESSES) + len(PAIRS) + 1))
    ports = {name: next(free) for name in (*PROCESSES, "etcd peer")}
    proxies = {pair: Proxy(next(free), ports[pair.rpartition(" ")[2]]) for pair in PAIRS}
    made = Cluster(folder, binaries, ports, proxies, controllers)
    try:
        await made.begin()
        yield made
    finally:
        shutil.rmtree(LOGS, ignore_errors=True)
        await made.end()
        shutil.copytree(folder / "logs", LOGS)
        shutil.rmtree(folder)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
