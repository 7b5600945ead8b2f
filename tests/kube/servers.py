"""A server on a real socket that answers as a test tells it, and knows what reached it."""

import asyncio
import contextlib
import json
import socket
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        return dict(urllib.parse.parse_qsl(self.target.partition("?")[2]))

    def json(self) -> Any:
        return json.loads(self.body)


Handler = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    url: str
    requests: list[Request] = field(default_factory=list)
    open_connections: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def methods(self) -> list[str]:
        return [request.method for request in self.requests]


@contextlib.asynccontextmanager
async def serving(
    handle: Handler, *, host: str = "127.0.0.1", idle_timeout: float | None = None
) -> AsyncIterator[Server]:
    server = Server("")
    connections: set[asyncio.Task[None]] = set()
    numbers = iter(range(1_000_000))

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.current_task())
        server.open_connections += 1
        server.idle.clear()
        number = next(numbers)
        try:
            while not writer.is_closing():
                async with asyncio.timeout(idle_timeout):
                    request = await _read(reader, number)
                server.requests.append(request)
                await handle(request, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            server.open_connections -= 1
            if not server.open_connections:
                server.idle.set()

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = await asyncio.start_server(connected, host, 0, family=family)
    port = listener.sockets[0].getsockname()[1]
    server.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    try:
        yield server
    finally:
        listener.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _read(reader: asyncio.StreamReader, number: int) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    method, target, _ = first.split(" ")
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, target, headers, body, number)


def answer(body: Any, status: int = 200, **headers: str) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(data)}", "Content-Type: application/json"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def failure(code: int, reason: str = "", message: str = "", **headers: str) -> bytes:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return answer({**body, "reason": reason, "message": message}, code, **headers)


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(kind: str, name: str = "a", version: str = "1", **fields: Any) -> bytes:
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": version}
    return json.dumps({"type": kind, "object": {"metadata": metadata, **fields}}).encode() + b"\n"


def listing(*names: str, version: str = "1", token: str = "") -> bytes:
    items = [{"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"}} for name in names]
    return answer({"metadata": {"resourceVersion": version, "continue": token}, "items": items})


def in_turn(*answers: bytes | None) -> Handler:
    """Answer the requests one after another; None takes the request and drops the connection."""
    left = iter(answers)

    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        reply = next(left)
        if reply is None:
            writer.close()
        else:
            writer.write(reply)

    return handle
