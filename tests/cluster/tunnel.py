"""An HTTP proxy that tunnels, remembers whereto, and can be cut like a cable."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Tunnel:
    url: str
    targets: list[str] = field(default_factory=list)
    authorizations: list[str] = field(default_factory=list)
    is_cut: bool = False
    sockets: set[socket.socket] = field(default_factory=set)

    def cut(self) -> None:
        """Break what is connected, and let nobody connect until `mend`."""
        self.is_cut = True
        for each in list(self.sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self.is_cut = False


@contextlib.contextmanager
def tunnel() -> Iterator[Tunnel]:
    """A proxy on a free port, for as long as the block lasts."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as server:
        made = Tunnel(f"http://127.0.0.1:{server.server_address[1]}")

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                _tunnel(self, made)

        server.RequestHandlerClass = Handler
        server.daemon_threads = True
        serving = threading.Thread(target=server.serve_forever, args=(0.05,))
        serving.start()
        try:
            yield made
        finally:
            server.shutdown()
            serving.join()


def _tunnel(request: socketserver.StreamRequestHandler, made: Tunnel) -> None:
    if made.is_cut:
        return
    target = request.rfile.readline().decode().split(" ")[1]
    made.targets.append(target)
    while (line := request.rfile.readline().decode().strip()) != "":
        name, _, value = line.partition(": ")
        if name.lower() == "proxy-authorization":
            made.authorizations.append(value)
    host, _, port = target.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port))) as beyond:
        made.sockets |= {beyond, request.connection}
        request.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        back = threading.Thread(target=_copy, args=(beyond, request.connection))
        back.start()
        _copy(request.connection, beyond)
        back.join()
        made.sockets -= {beyond, request.connection}


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
