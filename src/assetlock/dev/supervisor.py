"""The process that owns a local control plane's processes: `python -m assetlock.dev.supervisor`.

It is told what to do by lines of JSON on its standard input, and answers so on its standard output. When its
input ends it stops everything and removes the folder, unless it was told to `keep` first; so whoever started it
can't leave anything behind, not even when killed. SIGTERM and SIGINT stop it too. When it is itself killed the
kernel kills its children (Linux).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from assetlock.dev import children, components, folders, pki, probe
from assetlock.dev.access import Access
from assetlock.dev.binaries import Binaries
from assetlock.dev.children import Child
from assetlock.dev.errors import AlreadyRunning, DevError, StartFailed

_START_TIMEOUT = 120.0
_GRACE = 5.0
_TRIES = 5
_TAKEN = "address already in use"
_LONGEST_BACKOFF = 30.0


def emit(event: str, **fields: Any) -> None:
    """Tell whoever started us, if it still listens."""
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), json.dumps({"event": event, **fields}).encode() + b"\n")


@dataclass(slots=True)
class Supervisor:
    """One control plane and the processes that were added to it."""

    folder: pathlib.Path
    binaries: Binaries
    durable: bool
    audit: bool = False
    core: list[Child] = field(default_factory=list)
    added: dict[str, Child] = field(default_factory=dict)
    keepers: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    server: str = ""

    async def start(self) -> None:
        """Start the control plane; on other ports when somebody was faster to take ours."""
        pki.create(self.folder / "pki")
        (self.folder / "logs").mkdir(mode=0o700)
        for tries_left in reversed(range(_TRIES)):
            try:
                await self._start_on(components.Ports.free())
            except StartFailed as failure:
                taken = _TAKEN in str(failure) or any(_TAKEN in child.last_words(20) for child in self.core)
                await self._clear()
                if not (taken and tries_left):
                    raise
            else:
                return

    async def _start_on(self, ports: components.Ports) -> None:
        folder, tls = self.folder, self.folder / "pki"
        self.server = f"https://{components.LOOPBACK}:{ports.apiserver}"
        Access(folder, self.server, self.binaries.kubectl).write_system_kubeconfigs()
        emit("progress", text="starting etcd and kube-apiserver")
        argv = components.etcd(self.binaries, folder, ports, durable=self.durable)
        await self._start_core("etcd", argv, ports.etcd)
        argv = components.apiserver(self.binaries, folder, ports, audit=self.audit)
        apiserver = await self._start_core("kube-apiserver", argv, ports.apiserver)
        await self._until_ready(apiserver, "/readyz", probe.trusting(tls))
        emit("progress", text="starting kube-controller-manager")
        argv = components.controller_manager(self.binaries, folder)
        manager = await self._start_core("kube-controller-manager", argv)
        sign_of_life = "/api/v1/namespaces/default/serviceaccounts/default"
        await self._until_ready(manager, sign_of_life, probe.trusting(tls, "admin"))
        self.write_state("ready")

    async def _until_ready(self, child: Child, path: str, tls: Any) -> None:
        ready = asyncio.create_task(probe.until_ready(child, self.server + path, tls, _START_TIMEOUT))
        ended = asyncio.create_task(self.first_end())
        await asyncio.wait({ready, ended}, return_when=asyncio.FIRST_COMPLETED)
        try:
            if not ready.done():
                raise StartFailed(await ended)
            await ready
        finally:
            for task in (ready, ended):
                task.cancel()
            await asyncio.gather(ready, ended, return_exceptions=True)

    async def _start_core(self, name: str, argv: list[str], port: int | None = None) -> Child:
        child = await children.start(name, argv, self.folder / "logs", port=port)
        self.core.append(child)
        self.write_state("starting")
        return child

    async def first_end(self) -> str:
        """Wait until a process that must not end has ended, and say so."""
        waits = {asyncio.create_task(child.process.wait()): child for child in self.core}
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        child = waits[done.pop()]
        return f"{child.name} ended with {child.process.returncode}:\n{child.last_words()}"

    async def add(self, request: dict[str, Any]) -> Child:
        """Start a process of the user's own beside the control plane, and wait until it is ready."""
        name = request["name"]
        if name in self.added and self.added[name].running:
            raise AlreadyRunning(f"a process called {name} runs already")
        await self.remove(name)
        child = await self._start_added(request)
        if url := request.get("ready_url"):
            try:
                await probe.until_ready(child, url, probe.trusting_anybody(), request["timeout"])
            except StartFailed:
                await child.stop(0)
                raise
        if request.get("restart"):
            self.keepers[name] = asyncio.create_task(self._keep(child, request))
        return child

    async def _start_added(self, request: dict[str, Any]) -> Child:
        logs = self.folder / "logs"
        child = await children.start(request["name"], request["argv"], logs, env=request["env"])
        self.added[request["name"]] = child
        self.write_state("ready")
        return child

    async def _keep(self, child: Child, request: dict[str, Any]) -> None:
        backoff = 1.0
        while True:
            await child.process.wait()
            await asyncio.sleep(backoff)
            backoff = min(backoff * 2, _LONGEST_BACKOFF)
            child = await self._start_added(request)

    async def remove(self, name: str) -> None:
        """Stop an added process, and don't start it again."""
        if keeper := self.keepers.pop(name, None):
            keeper.cancel()
        if child := self.added.pop(name, None):
            await child.stop(_GRACE)
            self.write_state("ready")

    async def stop(self) -> None:
        """Stop everything, what was added first. The control plane's data goes, so it needs no grace."""
        await asyncio.gather(*(self.remove(name) for name in list(self.added)))
        await self._clear()

    async def _clear(self) -> None:
        await asyncio.gather(*(child.stop(0) for child in self.core))
        self.core.clear()
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)

    def write_state(self, phase: folders.Phase, error: str = "") -> None:
        """For `dev status`, and for whoever wants in."""
        every: Iterable[Child] = (*self.core, *self.added.values())
        processes = [
            folders.Running(child.name, child.process.pid, child.port) for child in every if child.running
        ]
        kubectl = str(self.binaries.kubectl)
        state = folders.State(phase, os.getpid(), self.server, kubectl, error, processes)
        folders.write_state(self.folder, state)


async def obey(supervisor: Supervisor, requests: asyncio.StreamReader) -> None:
    """Carry out what is asked, one request after the other, until the input ends without a `keep`."""
    kept = False
    while line := await requests.readline():
        request = json.loads(line)
        try:
            match request["do"]:
                case "keep":
                    kept = True
                    emit("done")
                case "add":
                    child = await supervisor.add(request)
                    emit("done", pid=child.process.pid, log=str(child.log))
                case "remove":
                    await supervisor.remove(request["name"])
                    emit("done")
        except (DevError, OSError) as error:
            emit("failed", error=str(error))
    if kept:
        await asyncio.Event().wait()


async def supervise(supervisor: Supervisor, requests: asyncio.StreamReader) -> str:
    """Run until told to stop, or until a process that must not end has ended; returns why, if it is a failure."""
    obeying = asyncio.create_task(obey(supervisor, requests))
    starting = asyncio.create_task(supervisor.start())
    try:
        await asyncio.wait({obeying, starting}, return_when=asyncio.FIRST_COMPLETED)
        if obeying.done():
            return ""
        await starting
        emit("ready", folder=str(supervisor.folder), server=supervisor.server)
        ending = asyncio.create_task(supervisor.first_end())
        await asyncio.wait({obeying, ending}, return_when=asyncio.FIRST_COMPLETED)
        return "" if obeying.done() else await ending
    except DevError as failure:
        return str(failure)
    finally:
        for task in (obeying, starting):
            task.cancel()
        await asyncio.gather(obeying, starting, return_exceptions=True)
        await supervisor.stop()


async def main() -> int:
    """Read the first line, which says what to start, and supervise it."""
    loop = asyncio.get_running_loop()
    requests = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin)
    first = json.loads(await requests.readline())
    binaries = Binaries(**{name: pathlib.Path(path) for name, path in first["binaries"].items()})
    temporary = first["folder"] is None
    folder = pathlib.Path(tempfile.mkdtemp(prefix="assetlock-") if temporary else first["folder"])
    try:
        folders.claim(folder)
    except DevError as error:
        emit("failed", error=str(error))
        return error.exit_code
    supervisor = Supervisor(folder, binaries, first["durable"], first["audit"])
    supervisor.write_state("starting")
    task = asyncio.create_task(supervise(supervisor, requests))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    failure = ""
    with contextlib.suppress(asyncio.CancelledError):
        failure = await task
    if failure:
        emit("failed", error=failure)
        supervisor.write_state("failed", failure)
    if not failure or temporary:
        shutil.rmtree(folder)
    return os.EX_UNAVAILABLE if failure else os.EX_OK


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
