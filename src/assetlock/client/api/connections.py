"""Kept-alive connections to the API server, shared between threads: one thread uses a connection at a time.

A connection that the server has closed meanwhile is seen before anything is sent on it, so that a write seldom meets
one. `Unreachable` means that none could be opened.
"""

from __future__ import annotations

import contextlib
import http.client
import select
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Mapping

from assetlock.client.api.config import Config
from assetlock.client.api.credentials import Credential, basic
from assetlock.client.api.errors import Unreachable
from assetlock.client.api.tls import TlsContexts

LONGEST_IDLE: float = 60.0
"""Seconds after which an idle connection is not trusted any more: something on the way may have forgotten it."""


class Connection:
    """One HTTP connection, and the certificate it was opened with."""

    def __init__(self, raw: http.client.HTTPConnection, certificate: str | None, prefix: str) -> None:
        self.raw = raw
        self._sock = raw.sock
        self.certificate = certificate
        self.used = False
        self.idle_since = 0.0
        self._prefix = prefix

    def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        more: tuple[tuple[str, str], ...],
        body: bytes | None,
    ) -> None:
        """Send a request; ``more`` are headers that may repeat."""
        self.raw.putrequest(method, self._prefix + path, skip_accept_encoding=True)
        for name, value in (*headers.items(), *more):
            self.raw.putheader(name, value.encode("utf-8"))
        if body is not None:
            self.raw.putheader("Content-Length", str(len(body)))
        self.raw.endheaders(body)

    def set_timeout(self, seconds: float) -> None:
        """How long to wait for the next bytes."""
        with contextlib.suppress(OSError):
            self._sock.settimeout(max(seconds, 0.001))

    def interrupt(self) -> None:
        """Make a read in another thread end at once."""
        with contextlib.suppress(OSError):  # SSLSocket.shutdown would take the TLS away under the reader
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)

    def close(self) -> None:
        """Give it up."""
        self.raw.close()

    def is_closed_by_server(self) -> bool:
        """Whether there is something to read on an idle connection: the end of it, or what nobody asked for."""
        if self._sock.fileno() < 0:
            return True
        poller = select.poll()
        poller.register(self._sock, select.POLLIN | select.POLLHUP | select.POLLERR)
        return bool(poller.poll(0))


class Connections:
    """The idle connections to one server."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._contexts = TlsContexts(config.tls)
        self._lock = threading.Lock()
        self._idle: list[Connection] = []

    def get(self, credential: Credential, timeout: float, *, fresh: bool = False) -> Connection:
        """An idle connection with this credential's certificate, or a new one; `Unreachable` if there is none."""
        while not fresh and (kept := self._pop(credential)):
            if time.monotonic() - kept.idle_since < LONGEST_IDLE and not kept.is_closed_by_server():
                kept.set_timeout(timeout)
                return kept
            kept.close()
        return self._open(credential, timeout)

    def put(self, connection: Connection) -> None:
        """Keep a connection whose last answer was read to its end."""
        connection.used, connection.idle_since = True, time.monotonic()
        with self._lock:
            self._idle.append(connection)

    def close(self) -> None:
        """Close those that are idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _pop(self, credential: Credential) -> Connection | None:
        with self._lock:
            for index in range(len(self._idle) - 1, -1, -1):
                if self._idle[index].certificate == credential.certificate:
                    return self._idle.pop(index)
        return None

    def _open(self, credential: Credential, timeout: float) -> Connection:
        url = urllib.parse.urlsplit(self._config.server)
        raw = self._raw(url, credential, timeout)
        prefix = url.path if url.scheme == "https" or not self._config.proxy else self._config.server
        try:
            raw.connect()
        except (OSError, http.client.HTTPException) as error:
            raw.close()
            via = f" through the proxy {_shown(self._config.proxy)}" if self._config.proxy else ""
            raise Unreachable(
                f"the API server {self._config.server} can't be reached{via}: {_why(error)}"
            ) from error
        return Connection(raw, credential.certificate, prefix.rstrip("/"))

    def _raw(
        self, url: urllib.parse.SplitResult, credential: Credential, timeout: float
    ) -> http.client.HTTPConnection:
        host, port = url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
        proxy = urllib.parse.urlsplit(self._config.proxy) if self._config.proxy else None
        first_host, first_port = (proxy.hostname or "", proxy.port or 80) if proxy else (host, port)
        if url.scheme == "http":
            return http.client.HTTPConnection(first_host, first_port, timeout=timeout)
        context = self._contexts.context_for(credential)
        raw = _TlsConnection(first_host, first_port, timeout, context, self._config.tls.server_name or host)
        if proxy:
            raw.set_tunnel(host, port, _proxy_headers(proxy))
        return raw


class _TlsConnection(http.client.HTTPSConnection):
    """Expects a certificate for ``server_name``, whatever the host is called."""

    def __init__(
        self, host: str, port: int, timeout: float, context: ssl.SSLContext, server_name: str
    ) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._expected = server_name
        self._tls = context

    def connect(self) -> None:
        """Connect, through the tunnel if there is one, and secure it."""
        http.client.HTTPConnection.connect(self)
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._expected)


def _proxy_headers(proxy: urllib.parse.SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    password = urllib.parse.unquote(proxy.password or "")
    return {"Proxy-Authorization": str(basic(urllib.parse.unquote(proxy.username), password).authorization)}


def _shown(proxy: str | None) -> str:
    """The proxy without its password."""
    url = urllib.parse.urlsplit(proxy or "")
    return f"{url.scheme}://{url.hostname}:{url.port or 80}"


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    return str(getattr(error, "strerror", None) or error)
