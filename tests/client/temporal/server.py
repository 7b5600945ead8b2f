"""A Temporal server: the one at ``TEMPORAL_ADDRESS``, else the SDK's test server in Java, fetched by Maven once."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator

from tests.client.servers import free_port

POM = pathlib.Path(__file__).with_name("pom.xml")
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "assetlock"
MAIN = "io.temporal.testserver.TestServer"


def jars() -> pathlib.Path:
    """The folder with the server's program; several test processes may ask at once."""
    folder = CACHE / f"temporal-{POM.stat().st_size}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "temporal.lock").open("w") as mutex:
        fcntl.flock(mutex, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
                shutil.copy(POM, scratch)
                goal = ["dependency:copy-dependencies", f"-DoutputDirectory={scratch}/jars"]
                subprocess.run(["mvn", "-q", "-B", *goal], cwd=scratch, check=True, timeout=280)
                (pathlib.Path(scratch) / "jars").rename(folder)
    return folder


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Its address."""
    if address := os.environ.get("TEMPORAL_ADDRESS"):
        yield address
        return
    port = free_port()
    with tempfile.TemporaryFile() as log:
        command = ["java", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", f"{jars()}/*", MAIN, str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + 60
            while not _answers(port):
                log.seek(0)
                assert process.poll() is None, log.read().decode()
                assert time.monotonic() < deadline, "the Temporal server does not answer"
                time.sleep(0.05)
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
