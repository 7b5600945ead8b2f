"""Real Redis servers and Sentinels on free ports, each in a folder of its own, ended with their context."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import redis


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Server:
    """A process that speaks Redis's protocol. `options` are lines of its configuration."""

    folder: pathlib.Path
    program: str
    port: int
    options: tuple[str, ...] = ()
    tls: tuple[str, ...] = ()
    password: str | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, password=self.password, protocol=2)

    def start(self) -> None:
        config = self.folder / "config"
        if not config.exists():
            port = ("port 0", f"tls-port {self.port}", *self.tls) if self.tls else (f"port {self.port}",)
            lines = (*port, "bind 127.0.0.1", f"dir {self.folder}", "daemonize no", *self.options)
            config.write_text("\n".join(lines) + "\n")
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([self.program, str(config)], stdout=log, stderr=log)
        self.wait_until_it_answers()

    def wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    if self.tls or self.client().ping():
                        return
            except (OSError, redis.RedisError) as error:
                said = (self.folder / "log").read_text()
                assert time.monotonic() < deadline, f"{self.program}: {error}\n{said}"
                time.sleep(0.02)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextlib.contextmanager
def redis_server(*options: str, tls: tuple[str, ...] = (), password: str | None = None) -> Iterator[Server]:
    with _folder() as folder:
        found = shutil.which("redis-server")
        assert found, "these tests need redis-server on the PATH"
        lines = ('save ""', "appendonly no", *options)
        if password:
            lines += (f"requirepass {password}", f"masterauth {password}")
        server = Server(folder, found, free_port(), lines, tls, password)
        try:
            server.start()
            yield server
        finally:
            server.kill()


@contextlib.contextmanager
def _folder() -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory(prefix="assetlock-redis-") as name:
        yield pathlib.Path(name)
