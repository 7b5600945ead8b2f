"""Credentials from a kubeconfig's `exec` plugin (client.authentication.k8s.io).

The plugin is run when there is no credential yet, shortly before the last one ends, and when the server
refused it; one run at a time, however many requests wait. A plugin that hangs is killed, one that needs a
terminal where there is none is not started; either way the error says which command it was. Its output is
never shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assetlock.kube.credentials import Credential, bearer
from assetlock.kube.errors import Unreachable

API_VERSIONS: frozenset[str] = frozenset(
    {"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"}
)
_LEEWAY = datetime.timedelta(seconds=30)
_STDERR_SHOWN: int = 500


@dataclass(frozen=True, slots=True)
class Plugin:
    """How a plugin is run."""

    command: str
    api_version: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None
    timeout: float = 30.0


class PluginCredentials:
    """The credentials that a plugin gives."""

    def __init__(
        self,
        plugin: Plugin,
        *,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
        is_terminal: Callable[[], bool] = lambda: sys.stdin is not None and sys.stdin.isatty(),
    ) -> None:
        self._plugin = plugin
        self._now = now
        self._is_terminal = is_terminal
        self._lock = asyncio.Lock()
        self._credential: Credential | None = None
        self._refresh_at: datetime.datetime | None = None

    async def current(self) -> Credential:
        """The last credential while it is good, else a new one."""
        async with self._lock:
            stale = self._refresh_at is not None and self._now() >= self._refresh_at
            if self._credential is None or stale:
                status = await self._run()
                self._credential = _credential(self._plugin, status)
                self._refresh_at = _refresh_at(self._plugin, status, self._now())
            return self._credential

    def refused(self, credential: Credential) -> bool:
        """Run the plugin again next time."""
        if credential == self._credential:
            self._credential = None
        return True

    async def _run(self) -> Mapping[str, Any]:
        plugin = self._plugin
        interactive = plugin.interactive_mode != "Never" and self._is_terminal()
        if plugin.interactive_mode == "Always" and not interactive:
            raise _failed(plugin, "it needs a terminal, and there is none")
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *plugin.args,
                env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": _exec_info(plugin, interactive)},
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=None if interactive else asyncio.subprocess.PIPE,
                start_new_session=not interactive,
            )
        except OSError as error:
            hint = f" ({plugin.install_hint.strip()})" if plugin.install_hint else ""
            raise _failed(plugin, f"it can't be started: {error.strerror}{hint}") from error
        return _status(plugin, await self._output(process, own_group=not interactive))

    async def _output(self, process: asyncio.subprocess.Process, *, own_group: bool) -> bytes:
        try:
            async with asyncio.timeout(self._plugin.timeout):
                stdout, stderr = await process.communicate()
        except TimeoutError as error:
            raise _failed(self._plugin, f"no answer within {self._plugin.timeout:g} s") from error
        finally:
            if process.returncode is None:
                _kill(process, own_group=own_group)
                await process.wait()
        if process.returncode:
            said = (stderr or b"").decode(errors="replace").strip()[-_STDERR_SHOWN:]
            raise _failed(self._plugin, f"exit code {process.returncode}{': ' + said if said else ''}")
        return stdout


def _kill(process: asyncio.subprocess.Process, *, own_group: bool) -> None:
    """Kill the plugin, and its children too if they are in a group of their own."""
    with contextlib.suppress(ProcessLookupError):
        if own_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _exec_info(plugin: Plugin, interactive: bool) -> str:
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.cluster is not None:
        spec["cluster"] = dict(plugin.cluster)
    return json.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})


def _status(plugin: Plugin, output: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(output)
    except ValueError as error:
        raise _failed(plugin, "its answer is not JSON") from error
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
        raise _failed(plugin, "its answer is no ExecCredential")
    if answer.get("apiVersion") != plugin.api_version:
        raise _failed(plugin, f"it answers in {answer.get('apiVersion')}, not {plugin.api_version}")
    status = answer.get("status")
    if not isinstance(status, dict):
        raise _failed(plugin, "its answer has no status")
    return status


def _credential(plugin: Plugin, status: Mapping[str, Any]) -> Credential:
    token, certificate, key = (
        status.get(name) for name in ("token", "clientCertificateData", "clientKeyData")
    )
    if not token and not (certificate and key):
        raise _failed(plugin, "it gave neither a token nor a certificate with its key")
    authorization = bearer(str(token)).authorization if token else None
    return Credential(authorization, certificate, key)


def _refresh_at(
    plugin: Plugin, status: Mapping[str, Any], now: datetime.datetime
) -> datetime.datetime | None:
    """When to ask again: a little before the end, but never so early that a short life is all refreshing."""
    text = status.get("expirationTimestamp")
    if not text:
        return None
    try:
        end = datetime.datetime.fromisoformat(str(text))
    except ValueError as error:
        raise _failed(plugin, "it gave a time of expiry that is none") from error
    if end.tzinfo is None:
        end = end.replace(tzinfo=datetime.UTC)
    return end - min(_LEEWAY, max(end - now, datetime.timedelta()) / 5)


def _failed(plugin: Plugin, why: str) -> Unreachable:
    return Unreachable(f"credential plugin {plugin.command!r}: {why}")
