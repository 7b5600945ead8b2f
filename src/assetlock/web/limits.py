"""What a client may do to the server: how large and how slow a body may be, and from where a browser may send one."""

from __future__ import annotations

import asyncio
import json

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 256 * 1024
"""Bytes: an asset's metadata is the largest thing that anybody sends."""

BODY_WITHIN = 10.0
"""Seconds in which a body has to arrive."""

_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class Limits:
    """Reads each body whole before the application sees it; refuses what is too large, too slow, or cross-site."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        if scope["method"] not in _READING and headers.get(b"sec-fetch-site") in (
            b"cross-site",
            b"same-site",
        ):
            await _refuse(scope, send, 403, "forbidden", "a page of another site can't do this in your name")
            return
        try:
            async with asyncio.timeout(BODY_WITHIN):
                body = await _whole(receive)
        except TimeoutError:
            await _refuse(
                scope, send, 408, "bad-request", f"the body did not arrive within {BODY_WITHIN:.0f} s"
            )
            return
        if body is None:
            await _refuse(scope, send, 413, "too-large", f"a body has at most {LARGEST_BODY // 1024} KiB")
            return
        await self._app(scope, _replayed(body, receive), send)


async def _whole(receive: Receive) -> bytes | None:
    """The body; ``None`` if it is too large. One whose client has gone is empty."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Gives the body once, then what else comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _refuse(scope: Scope, send: Send, status: int, kind: str, detail: str) -> None:
    document = {"type": f"/problems/{kind}", "status": status, "detail": detail, "instance": scope["path"]}
    body = json.dumps({"title": kind.replace("-", " ").capitalize(), **document}).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
