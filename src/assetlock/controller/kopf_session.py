"""kopf's way to the API server: no object is too deep for Python's JSON decoder there, and no silence goes unseen.

kopf decodes each line of a watch, and each list, with ``json``: an object nested a thousand deep ends its watch, and
with that the process. So what is too deep is left out of the bytes before kopf has them. Nothing of it is needed.
"""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import kopf

from assetlock.controller.watch_ages import WatchAges
from assetlock.kube.config import ClusterConfig
from assetlock.kube.decoding import decode, shallow
from assetlock.kube.lines import Lines
from assetlock.kube.tls import TlsContexts

CREDENTIAL_LIFE = datetime.timedelta(minutes=5)
_FEW_BRACKETS = 400
"""A line with no more can't be too deep, and is not looked through."""


class SessionFactory:
    """Opens sessions for kopf with the present credentials, which may be rotated; ``ages`` hears what comes."""

    def __init__(self, config: ClusterConfig, ages: WatchAges) -> None:
        self._config = config
        self._ages = ages
        self._tls = TlsContexts(config.tls)

    async def open(self) -> kopf.AiohttpSession:
        """A session that kopf closes when its time is over."""
        credential = await self._config.credentials.current()
        headers = dict(self._config.headers)
        if credential.authorization:
            headers["Authorization"] = credential.authorization
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls.context_for(credential)),
            headers=headers,
            proxy=self._config.proxy,
            response_class=_ShallowResponse,
            middlewares=[_Listening(self._ages)],
        )
        return kopf.AiohttpSession(
            server=self._config.server,
            aiohttp_session=session,
            expiration=datetime.datetime.now(datetime.UTC) + CREDENTIAL_LIFE,
        )


class _ShallowResponse(aiohttp.ClientResponse):
    async def start(self, connection: Any) -> aiohttp.ClientResponse:
        await super().start(connection)
        self.content = _ShallowLines(self.content)  # type: ignore[assignment]
        return self

    async def json(self, **_: Any) -> Any:
        return decode(await self.read())


class _ShallowLines:
    """The stream of a response, of which chunks come as whole lines."""

    def __init__(self, stream: aiohttp.StreamReader) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """Complete lines, each ended, and decodable."""
        lines = Lines()
        async for chunk in self._stream.iter_chunked(size):
            for line in lines.feed(chunk):
                yield _decodable(line) + b"\n"


def _decodable(line: bytes) -> bytes:
    return line if line.count(b"{") + line.count(b"[") <= _FEW_BRACKETS else shallow(line)


class _Listening:
    """Notes whenever something comes of what is watched."""

    def __init__(self, ages: WatchAges) -> None:
        self._ages = ages

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        response = await handler(request)
        plural = request.url.path.rpartition("/")[2]
        if response.status == 200 and response.content_type == "application/json":
            self._ages.heard(plural)
            response.content = _Heard(response.content, self._ages, plural)  # type: ignore[assignment]
        return response


class _Heard:
    """The stream of a response, each piece of which is noted."""

    def __init__(self, stream: aiohttp.StreamReader, ages: WatchAges, plural: str) -> None:
        self._stream = stream
        self._ages = ages
        self._plural = plural

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        """As they come."""
        async for chunk in self._stream.iter_chunked(size):
            self._ages.heard(self._plural)
            yield chunk
