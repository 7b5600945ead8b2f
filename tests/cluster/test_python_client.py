"""Locks of Python programs in a real cluster: the same queue and the same fence as for everybody else."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
from tests.cluster.conftest import Operated, until

from assetlock import AsyncLock, LockDenied, LockError, LockLost, LockTimeout, lock, needs_lock
from assetlock.client.api import load_config
from assetlock.client.backends.kubernetes import KubernetesBackend

T = TypeVar("T")


def elsewhere(call: Callable[[], T]) -> T:
    """Call it as somebody who holds nothing."""
    return contextvars.Context().run(call)


class Clients:
    """Backends of several users, in the namespace of the test."""

    def __init__(self, operated: Operated) -> None:
        self._operated = operated

    def of(self, user: str) -> KubernetesBackend:
        config = load_config(self._operated.cluster.kubeconfig_for(user))
        return KubernetesBackend(config, namespace=self._operated.namespace, scope="shop")


@pytest.fixture
def clients(operated: Operated) -> Clients:
    return Clients(operated)


@pytest.fixture
def alice(clients: Clients) -> KubernetesBackend:
    return clients.of("alice")


def locks(operated: Operated) -> list[str]:
    names: list[str] = operated.kubectl("get", "alk", "-o", "name").stdout.split()
    return names


def test_inside_the_block_only_its_holder_writes_to_the_target(
    operated: Operated, alice: KubernetesBackend
) -> None:
    operated.asset("vm-1", "app")
    with lock("vm-1", ttl="5m", reason="patching", backend=alice) as held:
        assert held.token == 1
        assert held.is_current()
        refused = operated.write("app", "bob")
        assert refused.returncode != 0
        assert "patching" in refused.stderr
        operated.write("app", "alice", check=True)
    assert locks(operated) == []
    until(lambda: operated.write("app", "bob").returncode == 0, "bob may write")


def test_programs_and_assetlocks_wait_in_one_queue(operated: Operated, clients: Clients) -> None:
    operated.asset("vm-1")
    operated.held("first", "bob")
    done: list[str] = []

    def work() -> None:
        with lock("vm-1", wait=60, backend=clients.of("alice")):
            done.append("alice")

    with pytest.raises(LockTimeout, match="bob") as caught:
        lock("vm-1", wait=0, backend=clients.of("alice")).acquire()
    assert caught.value.holders
    thread = threading.Thread(target=work)
    thread.start()
    until(lambda: operated.get("ast", "vm-1")["status"].get("queue"), "alice waits")
    operated.lock("third", "carol", wait="1m")
    assert done == []
    operated.kubectl("delete", "alk", "first", user="bob")
    operated.wait("alk/third", "condition=Acquired", timeout=60)
    thread.join(60)
    assert done == ["alice"]


async def test_a_revoked_lock_cancels_its_body_at_once(operated: Operated, alice: KubernetesBackend) -> None:
    operated.asset("vm-1")
    with pytest.raises(LockLost, match="vm-1 is lost"):
        async with AsyncLock("vm-1", ttl="1h", backend=alice):
            [name] = locks(operated)
            await asyncio.to_thread(operated.kubectl, "delete", name)
            await asyncio.sleep(60)


def test_a_lock_is_renewed_beyond_its_ttl(operated: Operated, alice: KubernetesBackend) -> None:
    operated.asset("vm-1")
    with lock("vm-1", ttl=6, backend=alice) as held:
        assert not held.lost.wait(12), held._term.loss
        assert held.is_current()
        held.extend("10m")
        assert (held.until.timestamp() - time.time()) > 300


def test_extending_gives_no_more_than_the_asset_allows(operated: Operated, alice: KubernetesBackend) -> None:
    operated.asset("vm-1", maxTTL="1m")
    with lock("vm-1", ttl=20, backend=alice) as held:
        held.extend("10m")
        assert (held.until.timestamp() - time.time()) < 61


def test_what_does_not_exist_or_is_not_yours_is_said_at_once(operated: Operated, clients: Clients) -> None:
    with pytest.raises(LockError, match=r"no asset 'vm-2'.*Create it, or correct the name"):
        lock("vm-2", wait=60, backend=clients.of("alice")).acquire()
    operated.asset("vm-1")
    with pytest.raises(LockDenied, match="you may not lock vm-1") as caught:
        lock("vm-1", backend=clients.of("mallory")).acquire()
    assert isinstance(caught.value, PermissionError)
    assert locks(operated) == []
    assert "assetlock-cleanup" not in {thread.name for thread in threading.enumerate()}


def test_several_assets_are_one_lock_with_a_token_each(operated: Operated, alice: KubernetesBackend) -> None:
    for name in ("b", "a"):
        operated.asset(name)
    with lock("b", "a", backend=alice) as held:
        assert held.tokens == {"a": 1, "b": 1}


def test_a_function_has_an_asset_with_as_many_slots_as_it_says(
    operated: Operated, clients: Clients, caplog: pytest.LogCaptureFixture
) -> None:
    backend = clients.of("root-like")
    give_assets_to(operated, "root-like")
    inside, most, mutex = 0, 0, threading.Lock()

    @needs_lock(max_locks=2, wait=60, backend=backend)
    def work() -> None:
        nonlocal inside, most
        with mutex:
            inside += 1
            most = max(most, inside)
        time.sleep(0.05)
        with mutex:
            inside -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert 1 <= most <= 2
    [asset] = operated.kubectl("get", "ast", "-o", "name").stdout.split()
    assert asset.startswith("asset.assetlock.dev/")


@pytest.mark.parametrize(("first", "second", "counts"), [(3, 2, 2), (2, 3, 2)])
def test_of_disagreeing_max_locks_the_smaller_counts(
    operated: Operated,
    clients: Clients,
    caplog: pytest.LogCaptureFixture,
    first: int,
    second: int,
    counts: int,
) -> None:
    give_assets_to(operated, "alice")
    one, other = clients.of("alice"), clients.of("alice")
    lock("pool", max_locks=first, backend=one).acquire().release()
    held = [lock("pool", max_locks=second, wait=10, backend=other).acquire() for _ in range(counts)]
    assert lock("pool", max_locks=first, backend=one).try_acquire() is None
    assert f"{counts} counts" in caplog.text
    for each in held:
        each.release()


def test_a_described_asset_is_never_changed(operated: Operated, alice: KubernetesBackend) -> None:
    operated.asset("vm-1", capacity=3)
    with pytest.raises(LockDenied, match=r"has capacity 3.*set spec.capacity to 2"):
        lock("vm-1", max_locks=2, backend=alice).acquire()


def give_assets_to(operated: Operated, user: str) -> None:
    role = f"{operated.namespace}-{user}"
    verbs = "--verb=get,list,watch,create,update,patch,delete,lock"
    operated.kubectl(
        "create", "role", role, verbs, "--resource=assets.assetlock.dev,assetlocks.assetlock.dev"
    )
    operated.kubectl("create", "rolebinding", role, f"--role={role}", f"--user={user}")


async def test_whoever_is_cancelled_leaves_no_lock_behind(
    operated: Operated, alice: KubernetesBackend
) -> None:
    operated.asset("vm-1")

    async def work() -> None:
        async with AsyncLock("vm-1", ttl=60, wait=30, backend=alice) as held:
            await held.extend(120)

    async def cancelled() -> None:
        task = asyncio.get_running_loop().create_task(work(), context=contextvars.Context())
        await asyncio.sleep(random.uniform(0, 0.1))
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    for _ in range(15):
        await asyncio.gather(cancelled(), cancelled())
    until(lambda: locks(operated) == [], "no AssetLock is left", seconds=60)


def test_the_lock_of_a_program_that_was_killed_expires(operated: Operated, clients: Clients) -> None:
    operated.asset("vm-1")
    script = (
        "from assetlock import lock\n"
        "held = lock('vm-1', ttl=3).acquire()\n"
        "print('held', flush=True)\n"
        "held.lost.wait(60)\n"
    )
    with program(operated, script) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "held\n"
        running.kill()
        running.wait()
        elsewhere(lambda: lock("vm-1", wait=60, backend=clients.of("alice")).acquire().release())


@contextlib.contextmanager
def program(operated: Operated, script: str) -> Iterator[subprocess.Popen[str]]:
    """A program of alice's, with her kubeconfig."""
    kubeconfig = operated.cluster.kubeconfig_for("alice")
    operated.cluster.kubectl(
        "config",
        "set-context",
        "--current",
        f"--namespace={operated.namespace}",
        f"--kubeconfig={kubeconfig}",
    )
    environment = {"KUBECONFIG": str(kubeconfig), "PATH": ""}
    command = [sys.executable, "-P", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as running:
        try:
            yield running
        finally:
            running.kill()
