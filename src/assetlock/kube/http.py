"""The transport that speaks HTTP to a real API server, with aiohttp.

Each request is sent once, and once more only if the server refused our credentials (401, so it did nothing)
and there are others to try. aiohttp by itself sends PUT and DELETE again when a kept connection turns out
to be closed; that is switched off. Requests and streams have connections of their own, so that watches
starve nobody.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from assetlock.kube.config import ClusterConfig
from assetlock.kube.credentials import Credential, Fixed
from assetlock.kube.lines import Lines, LineTooLongError
from assetlock.kube.tls import TlsContexts
from assetlock.kube.transport import Reply, StreamRefused, TransportError, Unreachable

_CONNECT_TIMEOUT: float = 10.0
_MOST_CONNECTIONS: int = 64
_NEVER_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
)
_FAILURES = (aiohttp.ClientError, OSError, TimeoutError, LineTooLongError)


class HttpTransport:
    """Sends requests to the API server of a configuration. Opened by its first use, in the running loop."""

    def __init__(self, config: ClusterConfig, *, user_agent: str = "assetlock") -> None:
        self._config = config
        self._base = URL(config.server)
        self._tls = TlsContexts(config.tls)
        self._user_agent = user_agent
        self._requests: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None

    def acting_with(self, credential: Credential) -> HttpTransport:
        """The same server and connections with another credential; closing the original closes both.

        The original has to be without an identity: its connections show no certificate.
        """
        if self._config.tls.key_data or self._config.tls.key_file:
            raise ValueError("connections that show a client certificate can't be shared with others")
        self._requests = self._requests or _session(_MOST_CONNECTIONS)
        self._streams = self._streams or _session(0)
        other = copy.copy(self)
        other._config = dataclasses.replace(self._config, credentials=Fixed(credential), headers=())
        return other

    async def close(self) -> None:
        """Close all connections."""
        for session in (self._requests, self._streams):
            if session is not None:
                await session.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: float,
    ) -> Reply:
        """Send a request and read its whole answer."""
        self._requests = self._requests or _session(_MOST_CONNECTIONS)
        limits = aiohttp.ClientTimeout(total=timeout, sock_connect=min(timeout, _CONNECT_TIMEOUT))
        for is_last in (False, True):
            credential = await self._config.credentials.current()
            try:
                async with self._requests.request(
                    method,
                    self._url(path, params),
                    data=body,
                    timeout=limits,
                    **self._options(credential, headers),
                ) as response:
                    reply = await _reply(response)
            except _NEVER_SENT as error:
                raise Unreachable(f"can't reach {self._config.server}: {error}") from error
            except _FAILURES as error:
                raise TransportError(f"{method} {path}: no answer: {_described(error)}") from error
            if is_last or not self._may_try_other(reply, credential):
                break
        return reply

    async def stream(
        self, path: str, *, params: Mapping[str, str], headers: Mapping[str, str], idle_timeout: float
    ) -> AsyncIterator[bytes]:
        """GET a stream and yield its complete lines."""
        self._streams = self._streams or _session(0)
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=idle_timeout)
        credential = await self._config.credentials.current()
        lines = Lines()
        try:
            async with self._streams.get(
                self._url(path, params), timeout=limits, **self._options(credential, headers)
            ) as response:
                if response.status != 200:
                    reply = await _reply(response)
                    self._may_try_other(reply, credential)
                    raise StreamRefused(reply)
                async for chunk in response.content.iter_any():
                    for line in lines.feed(chunk):
                        yield line
        except _NEVER_SENT as error:
            raise Unreachable(f"can't reach {self._config.server}: {error}") from error
        except _FAILURES as error:
            raise TransportError(f"GET {path}: the stream broke: {_described(error)}") from error

    def _url(self, path: str, params: Mapping[str, str]) -> URL:
        """The URL of an API path, below the path of the server if that has one, taken as it is quoted."""
        base = str(self._base).rstrip("/")
        return URL(f"{base}{path}", encoded=True).extend_query(params)

    def _options(self, credential: Credential, headers: Mapping[str, str]) -> dict[str, Any]:
        all_headers = CIMultiDict(headers)
        all_headers.extend(self._config.headers)
        all_headers["User-Agent"] = self._user_agent
        all_headers["Accept-Encoding"] = "identity"
        if credential.authorization:
            all_headers["Authorization"] = credential.authorization
        return {
            "headers": all_headers,
            "proxy": self._config.proxy,
            "ssl": self._tls.context_for(credential) if self._base.scheme == "https" else True,
            "server_hostname": self._config.tls.server_name,
            "allow_redirects": False,
        }

    def _may_try_other(self, reply: Reply, credential: Credential) -> bool:
        return reply.status == 401 and self._config.credentials.refused(credential)


def _session(limit: int) -> aiohttp.ClientSession:
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit, keepalive_timeout=30),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    )
    session._retry_connection = False
    return session


async def _reply(response: aiohttp.ClientResponse) -> Reply:
    body = await response.read()
    return Reply(response.status, {name.lower(): value for name, value in response.headers.items()}, body)


def _described(error: BaseException) -> str:
    """What happened, also for errors that say nothing."""
    if isinstance(error, asyncio.TimeoutError):
        return "the time is up"
    return str(error) or type(error).__name__
