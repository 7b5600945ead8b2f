"""Credentials from a kubeconfig's `exec` plugin (client.authentication.k8s.io).

The plugin runs when there is no credential yet, shortly before the last one ends, and when the server refused it; one
run at a time, however many threads wait. A plugin that hangs is killed with its children, one that needs a terminal
where there is none is not started; either way the error says which command it was. Its output is never shown.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assetlock.client.api.credentials import Credential, bearer
from assetlock.client.api.errors import Unreachable

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_LEEWAY = datetime.timedelta(seconds=30)
_STDERR_SHOWN = 500


@dataclass(frozen=True, slots=True)
class Plugin:
    """How a plugin is run. ``timeout`` is in seconds."""

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
        self.plugin = plugin
        self._now = now
        self._is_terminal = is_terminal
        self._lock = threading.Lock()
        self._credential: Credential | None = None
        self._refresh_at: datetime.datetime | None = None

    def current(self) -> Credential:
        """The last credential while it is good, else a new one."""
        with self._lock:
            stale = self._refresh_at is not None and self._now() >= self._refresh_at
            if self._credential is None or stale:
                status = self._status(self._run())
                self._credential = self._credential_in(status)
                self._refresh_at = self._refresh_time(status)
            return self._credential

    def refused(self, credential: Credential) -> bool:
        """Run the plugin again next time."""
        with self._lock:
            if credential == self._credential:
                self._credential = None
        return True

    def _run(self) -> bytes:
        plugin = self.plugin
        interactive = plugin.interactive_mode != "Never" and self._is_terminal()
        if plugin.interactive_mode == "Always" and not interactive:
            raise self._failed("it needs a terminal, and there is none")
        try:
            process = subprocess.Popen(
                [plugin.command, *plugin.args],
                env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": self._exec_info(interactive)},
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if interactive else subprocess.PIPE,
                start_new_session=not interactive,
            )
        except OSError as error:
            hint = f" ({plugin.install_hint.strip()})" if plugin.install_hint else ""
            raise self._failed(f"it can't be started: {error.strerror}{hint}") from error
        return self._output(process, own_group=not interactive)

    def _output(self, process: subprocess.Popen[bytes], *, own_group: bool) -> bytes:
        try:
            stdout, stderr = process.communicate(timeout=self.plugin.timeout)
        except subprocess.TimeoutExpired as error:
            raise self._failed(f"no answer within {self.plugin.timeout:g} s") from error
        finally:
            if process.returncode is None:
                _kill(process, own_group=own_group)
                process.wait()
            for pipe in filter(None, (process.stdout, process.stderr)):
                pipe.close()
        if process.returncode:
            said = (stderr or b"").decode(errors="replace").strip()[-_STDERR_SHOWN:]
            raise self._failed(f"exit code {process.returncode}{': ' + said if said else ''}")
        return stdout

    def _exec_info(self, interactive: bool) -> str:
        spec: dict[str, Any] = {"interactive": interactive}
        if self.plugin.cluster is not None:
            spec["cluster"] = dict(self.plugin.cluster)
        return json.dumps({"apiVersion": self.plugin.api_version, "kind": "ExecCredential", "spec": spec})

    def _status(self, output: bytes) -> Mapping[str, Any]:
        try:
            answer = json.loads(output)
        except ValueError as error:
            raise self._failed("its answer is not JSON") from error
        if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
            raise self._failed("its answer is no ExecCredential")
        if answer.get("apiVersion") != self.plugin.api_version:
            raise self._failed(f"it answers in {answer.get('apiVersion')}, not {self.plugin.api_version}")
        status = answer.get("status")
        if not isinstance(status, dict):
            raise self._failed("its answer has no status")
        return status

    def _credential_in(self, status: Mapping[str, Any]) -> Credential:
        names = ("token", "clientCertificateData", "clientKeyData")
        token, certificate, key = (status.get(name) for name in names)
        if not token and not (certificate and key):
            raise self._failed("it gave neither a token nor a certificate with its key")
        return Credential(bearer(str(token)).authorization if token else None, certificate, key)

    def _refresh_time(self, status: Mapping[str, Any]) -> datetime.datetime | None:
        """A little before the credential ends, but never so early that a short life is all refreshing."""
        text, now = status.get("expirationTimestamp"), self._now()
        if not text:
            return None
        try:
            end = datetime.datetime.fromisoformat(str(text))
        except ValueError as error:
            raise self._failed("it gave a time of expiry that is none") from error
        end = end if end.tzinfo else end.replace(tzinfo=datetime.UTC)
        return end - min(_LEEWAY, max(end - now, datetime.timedelta()) / 5)

    def _failed(self, why: str) -> Unreachable:
        return Unreachable(f"credential plugin {self.plugin.command!r}: {why}")


def _kill(process: subprocess.Popen[bytes], *, own_group: bool) -> None:
    with contextlib.suppress(ProcessLookupError):
        if own_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
