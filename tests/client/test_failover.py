"""Redis with Sentinels and with TLS. What a fail-over may cost is what `backend.py` and the page about it say."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import pathlib
import shutil
import time
from collections.abc import Callable, Iterator

import pytest
import redis
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from assetlock import BackendUnavailable, LockDenied, lock
from assetlock.client.backends.redis import RedisBackend, RedisConfig
from tests.client import servers
from tests.client.servers import Server, free_port

PASSWORD = "s3cret"


def until(holds: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(redis.RedisError):
            if holds():
                return
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@contextlib.contextmanager
def sentinel(master: Server, folder: pathlib.Path) -> Iterator[Server]:
    found = shutil.which("redis-sentinel")
    assert found, "these tests need redis-sentinel on the PATH"
    options = (
        f"sentinel monitor locks 127.0.0.1 {master.port} 2",
        f"sentinel auth-pass locks {PASSWORD}",
        "sentinel down-after-milliseconds locks 500",
        "sentinel failover-timeout locks 3000",
    )
    folder.mkdir()
    server = Server(folder, found, free_port(), options)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def test_locks_are_kept_and_granted_by_the_new_master_after_a_fail_over(tmp_path: pathlib.Path) -> None:
    with contextlib.ExitStack() as stack:
        master = stack.enter_context(servers.redis_server(password=PASSWORD))
        replica = stack.enter_context(
            servers.redis_server(f"replicaof 127.0.0.1 {master.port}", password=PASSWORD)
        )
        sentinels = [stack.enter_context(sentinel(master, tmp_path / str(n))) for n in range(3)]
        until(lambda: replica.client().info("replication")["master_link_status"] == "up", "replication")
        for each in sentinels:
            found = each.client()
            until(lambda found=found: found.sentinel_master("locks")["num-other-sentinels"] == 2, "Sentinels")
            until(lambda found=found: found.sentinel_master("locks")["num-slaves"] == 1, "the replica")
        backend = RedisBackend(
            RedisConfig(
                sentinels=tuple(("127.0.0.1", each.port) for each in sentinels),
                service="locks",
                password=PASSWORD,
            ),
            scope="fail-over",
        )
        with lock("vm-1", ttl=60, backend=backend) as held:
            master.client().wait(1, 10_000)  # only what has reached the replica is kept
            master.kill()
            until(lambda: replica.client().info("replication")["role"] == "master", "a new master")
            until(lambda: _is_current(held.is_current), "the lock at the new master")
            held.extend(60)
            first = held.token
        with lock("vm-1", wait=30, backend=backend) as held:
            assert held.token > first


def _is_current(ask: Callable[[], bool]) -> bool:
    with contextlib.suppress(BackendUnavailable):
        return ask()
    return False


def certificates(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """A certificate for this machine that is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    alternatives = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "tls.crt", folder / "tls.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


def test_redis_is_reached_by_tls_and_with_a_password(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = certificates(tmp_path)
    tls = (
        f"tls-cert-file {certificate}",
        f"tls-key-file {key}",
        f"tls-ca-cert-file {certificate}",
        "tls-auth-clients no",
    )
    with servers.redis_server(tls=tls, password=PASSWORD) as server:
        environment = {"HOST": "127.0.0.1", "PORT": str(server.port), "TLS": "true", "DB": "3"}
        environment |= {"CA_FILE": str(certificate), "PASSWORD": PASSWORD}
        for name, value in environment.items():
            monkeypatch.setenv(f"REDIS_{name}", value)
        config = RedisConfig.from_environment()
        first = lock("vm-1", backend=RedisBackend(config)).acquire()
        waiting = lock("vm-1", wait=0.3, backend=RedisBackend(config))
        assert waiting.try_acquire() is None
        first.release()
        monkeypatch.setenv("REDIS_PASSWORD", "wrong")
        with pytest.raises(LockDenied, match="does not let you in") as caught:
            lock("vm-1", backend=RedisBackend.from_environment()).acquire()
        assert "wrong" not in str(caught.value)
        monkeypatch.setenv("REDIS_CA_FILE", "")
        with pytest.raises(BackendUnavailable, match="certificate"):
            lock("vm-1", backend=RedisBackend.from_environment()).acquire()


@pytest.mark.parametrize(
    ("name", "value"), [("REDIS_PORT", "http"), ("REDIS_DB", "-1"), ("REDIS_SENTINEL_HOSTS", "a:b")]
)
def test_what_the_environment_says_wrongly_is_named(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=name):
        RedisConfig.from_environment({name: value})
