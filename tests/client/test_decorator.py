"""`needs_lock`: what it takes, what it refuses, and what it leaves as it is."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

from assetlock import LockTimeout, current_lock, lock, needs_lock
from assetlock.client.backends.redis import RedisBackend


@dataclass
class Machine:
    id: str | None


def locked() -> tuple[str, ...]:
    held = current_lock()
    assert held is not None
    return held.names


def test_a_template_is_filled_from_the_arguments_and_their_defaults(backend: RedisBackend) -> None:
    @needs_lock("vm-{vm_id}-{machine.id}-{zone:>02}", backend=backend)
    def patch(vm_id: int, machine: Machine, *, zone: str = "7") -> tuple[str, ...]:
        return locked()

    assert patch(3, machine=Machine("x")) == ("vm-3-x-07",)


def test_a_name_may_be_worked_out_from_the_arguments(backend: RedisBackend) -> None:
    @needs_lock(lambda machine: f"vm-{machine.id}", "fixed", backend=backend)
    def patch(machine: Machine) -> tuple[str, ...]:
        return locked()

    assert patch(Machine("1")) == ("fixed", "vm-1")


def test_without_a_name_a_function_has_its_own(backend: RedisBackend) -> None:
    @needs_lock(max_locks=5, backend=backend)
    def patch() -> tuple[str, ...]:
        return locked()

    [name] = patch()
    assert name.startswith("tests.client.test_decorator.")
    assert name.endswith(".patch")


@pytest.mark.parametrize("missing", [None, ""])
def test_nothing_is_no_part_of_a_name(backend: RedisBackend, missing: str | None) -> None:
    @needs_lock("vm-{machine.id}", backend=backend)
    def patch(machine: Machine) -> None:
        pytest.fail("entered")

    with pytest.raises(ValueError, match="nothing to make a name of"):
        patch(Machine(missing))


def test_a_template_that_does_not_fit_is_refused_when_decorating() -> None:
    with pytest.raises(TypeError, match="no parameter 'vm'"):

        @needs_lock("vm-{vm}")
        def patch(vm_id: str) -> None: ...


async def test_a_coroutine_function_stays_one(backend: RedisBackend) -> None:
    @needs_lock("vm-{vm_id}", backend=backend)
    async def patch(vm_id: str) -> tuple[str, ...]:
        """Patch it."""
        await asyncio.sleep(0)
        return locked()

    assert inspect.iscoroutinefunction(patch)
    assert patch.__doc__ == "Patch it."
    assert list(inspect.signature(patch).parameters) == ["vm_id"]
    assert await patch("1") == ("vm-1",)


def test_methods_of_all_kinds_are_guarded(backend: RedisBackend) -> None:
    class Fleet:
        name = "fleet"

        @needs_lock("{self.name}-{vm}", backend=backend)
        def patch(self, vm: str) -> tuple[str, ...]:
            return locked()

        @classmethod
        @needs_lock("{cls.name}", backend=backend)
        def count(cls) -> tuple[str, ...]:
            return locked()

        @staticmethod
        @needs_lock("static", backend=backend)
        def helper() -> tuple[str, ...]:
            return locked()

    assert Fleet().patch("1") == ("fleet-1",)
    assert Fleet.count() == ("fleet",)
    assert Fleet.helper() == ("static",)


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (generator, "is a generator"),
        (async_generator, "is a generator"),
        (functools.wraps(generator)(functools.partial(generator)), "is not a function"),
        (Machine, "is not a function"),
        (staticmethod(locked), "below @staticmethod"),
        (classmethod(locked), "below @classmethod"),
        (property(locked), "below @property"),
    ],
)
def test_what_cannot_be_guarded_is_refused_when_decorating(what: object, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        needs_lock("vm-1")(what)  # type: ignore[arg-type]


def test_forgotten_parentheses_are_noticed_when_decorating() -> None:
    with pytest.raises(TypeError, match=r"write @needs_lock\(\)"):

        @needs_lock  # type: ignore[arg-type]
        def patch() -> None: ...


def test_work_that_would_be_done_after_the_call_is_refused(backend: RedisBackend) -> None:
    async def work() -> None: ...

    @needs_lock("vm-1", backend=backend)
    def patch() -> object:
        return work()

    with pytest.raises(TypeError, match="returned a coroutine, which would run without the lock"):
        patch()


def test_the_body_does_not_run_unlocked(backend: RedisBackend) -> None:
    @needs_lock("vm-1", wait=0, backend=backend)
    def patch() -> None:
        pytest.fail("entered")

    held = lock("vm-1", backend=backend).acquire()
    with pytest.raises(LockTimeout):
        patch()
    held.release()


def test_the_lock_is_free_after_an_error(backend: RedisBackend) -> None:
    @needs_lock("vm-1", backend=backend)
    def patch() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        patch()
    assert lock("vm-1", backend=backend).holders() == {"vm-1": []}
