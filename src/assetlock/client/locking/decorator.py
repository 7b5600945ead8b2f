"""`needs_lock`: a function that runs only while its lock is held.

It keeps what the function is: a coroutine function stays one, with the same parameters and types. What goes on
after the call has returned can't be guarded, so generators and the like are refused when they are decorated, and
a function that returns something to be awaited is refused when it does.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from assetlock.client.locking import naming, spans
from assetlock.client.locking.backend import Backend
from assetlock.client.locking.locks import AsyncLock, Lock, OnLost, Terms
from assetlock.client.locking.naming import Name
from assetlock.client.locking.spans import TTL, WAIT, Span

P = ParamSpec("P")
R = TypeVar("R")
MARK = "__assetlock_guard__"


class Decorator(Protocol):
    """What `needs_lock` gives: it leaves parameters and result as they are."""

    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]:
        """Guard the function."""
        ...


class Guard:
    """What a decorated function locks, and how."""

    def __init__(self, function: Callable[..., Any], names: tuple[Name, ...], terms: Terms) -> None:
        self.function = function
        self.terms = terms
        self._namers = tuple(naming.namer(name, function) for name in names)

    def names(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, ...]:
        """What a call with these arguments locks."""
        if not self._namers:
            return (naming.own_name(self.function),)
        return tuple(namer(args, kwargs) for namer in self._namers)

    @property
    def shown(self) -> str:
        """The function, for messages."""
        return f"{self.function.__module__}.{self.function.__qualname__}"


def needs_lock(
    *names: Name,
    ttl: Span | None = None,
    wait: Span | None = None,
    max_locks: int | None = None,
    on_lost: OnLost = "cancel",
    reentrant: bool = False,
    reason: str | None = None,
    backend: Backend | None = None,
) -> Decorator:
    """Have a function run only while it holds locks.

    ``names``: ``"vm-1"``, ``"vm-{vm_id}"`` over the function's arguments, or ``lambda vm: vm.id`` of them;
    without any, the function's own name within ``APPLICATION_NAME``. The rest is as with `Lock`. Raises TypeError
    for what can't be guarded.
    """
    terms = Terms(
        TTL if ttl is None else spans.ttl_seconds(ttl),
        WAIT if wait is None else spans.seconds(wait, "wait"),
        max_locks,
        on_lost,
        reentrant,
        reason,
        backend,
        made=not names,
        given=frozenset(what for what, value in (("ttl", ttl), ("wait", wait)) if value is not None),
    )
    _check_names(names, bare=terms == Terms(made=not names))

    def decorate(function: Callable[P, R], /) -> Callable[P, R]:
        _check(function)
        guard = Guard(function, names, terms)
        if inspect.iscoroutinefunction(function):
            guarded: Callable[..., Any] = _guarded_coroutine(guard, function)
        else:
            guarded = _guarded_function(guard, function)
        setattr(guarded, MARK, guard)
        return cast("Callable[P, R]", guarded)

    return decorate


def guard_of(function: object) -> Guard | None:
    """How a function is guarded; None if it is not."""
    found = getattr(function, MARK, None)
    return found if isinstance(found, Guard) else None


def _guarded_function(guard: Guard, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if _is_guarded_elsewhere(guard):
            return _finished(guard, function(*args, **kwargs))
        with Lock._of(guard.names(args, kwargs), guard.terms):
            return _finished(guard, function(*args, **kwargs))

    return guarded


def _guarded_coroutine(guard: Guard, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        if _is_guarded_elsewhere(guard):
            return await function(*args, **kwargs)
        async with AsyncLock._of(guard.names(args, kwargs), guard.terms):
            return await function(*args, **kwargs)

    return guarded


def _is_guarded_elsewhere(guard: Guard) -> bool:
    """Whether Temporal's worker has the lock for this call; raises where a decorated function can't be called."""
    if "temporalio" not in sys.modules:
        return False
    from assetlock.client.temporal import calls

    return calls.is_guarded(guard.shown)


def _check_names(names: tuple[Name, ...], *, bare: bool) -> None:
    for name in names:
        named = getattr(name, "__name__", None)
        forgotten = bare and len(names) == 1 and named != "<lambda>"
        if callable(name) and (inspect.isclass(name) or inspect.iscoroutinefunction(name) or forgotten):
            raise TypeError(
                f'write @needs_lock() above {named or name!r}, or name the lock: @needs_lock("vm-1")'
            )
        if not callable(name) and not isinstance(name, str):
            raise TypeError(f"{name!r} names no lock: give text, or a function of the arguments")


def _check(function: object) -> None:
    shown = getattr(function, "__qualname__", None) or repr(function)
    if isinstance(function, staticmethod | classmethod | property):
        raise TypeError(f"put @needs_lock below @{type(function).__name__}, next to the function")
    if inspect.isclass(function) or not inspect.isroutine(function):
        raise TypeError(f"{shown} is not a function: decorate the function or method that does the work")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(
            f"{shown} is a generator, whose body runs after the call has returned: use `with lock(...)` in it"
        )
    if hasattr(function, "__temporal_workflow_run") or hasattr(function, "__temporal_workflow_definition"):
        raise TypeError(f"{shown} is a workflow: only activities can be locked, as a workflow is replayed")


def _finished(guard: Guard, result: Any) -> Any:
    """The result, unless the work is still to be done with it."""
    if inspect.isawaitable(result) or inspect.isgenerator(result) or inspect.isasyncgen(result):
        if (close := getattr(result, "close", None)) is not None:
            close()
        raise TypeError(f"{guard.shown} returned a {type(result).__name__}, which would run without the lock")
    return result
