"""`LockInterceptor`: takes the lock of an activity around each of its attempts.

An attempt is an acquisition of its own. It never lasts longer than what remains of the activity's
``schedule_to_close_timeout``: when Temporal has given up on the activity, its lock is free. With ``ttl`` the lock
is renewed within that time, so that it is free sooner if the worker dies.

Waiting ends early, with an error after which Temporal tries again: a worker's slots are for work.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import datetime
import inspect
import random
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from assetlock.client import clock
from assetlock.client.locking import chain, decorator, spans
from assetlock.client.locking.decorator import Guard
from assetlock.client.locking.errors import LockError
from assetlock.client.locking.held import AsyncHeld, Held
from assetlock.client.locking.locks import AsyncLock, Terms
from assetlock.client.locking.spans import Span
from assetlock.client.temporal import calls
from assetlock.client.temporal.elsewhere import Carried

WAIT = 10.0
"""Seconds for which an attempt waits, if neither the decorator nor the interceptor say."""

LONGEST_DELAY = 5.0
"""Seconds after which Temporal tries again at the latest, if its own backoff does not come later."""

LONGEST = datetime.timedelta(days=365)
"""A server may fill in a missing timeout with one of many years."""


class LockInterceptor(Interceptor):
    """For the ``interceptors`` of a Worker or Client.

    ``wait``: for how long an attempt of an activity whose decorator does not say waits for its lock.
    """

    def __init__(self, *, wait: Span = WAIT) -> None:
        self._wait = spans.seconds(wait, "wait")

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """Guard the activities that are decorated."""
        return _Guarding(next, self._wait)


class _Guarding(ActivityInboundInterceptor):
    def __init__(self, following: ActivityInboundInterceptor, wait: float) -> None:
        super().__init__(following)
        self._wait = wait

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        """Run it while its lock is held."""
        guard = decorator.guard_of(input.fn) or decorator.guard_of(getattr(input.fn, "__call__", None))  # noqa: B004
        if guard is None:
            return await super().execute_activity(input)
        lock = AsyncLock._of(_names(guard, input), self._terms(guard, input))
        mark = calls.guarded_activity.set(guard.shown)
        try:
            async with lock as held:
                return await super().execute_activity(_inside(guard, held, input))
        except LockError as error:
            raise _for_temporal(error) from error
        finally:
            calls.guarded_activity.reset(mark)

    def _terms(self, guard: Guard, input: ExecuteActivityInput) -> Terms:
        info, terms = activity.info(), guard.terms
        remains = _remaining(info)
        wait = terms.wait if "wait" in terms.given else self._wait
        if info.heartbeat_timeout is not None:
            wait = min(wait, info.heartbeat_timeout.total_seconds() / 2)
        # A process of a pool does not see renewals, and may go on after the worker.
        renewed = "ttl" in terms.given and not _in_other_process(input)
        return dataclasses.replace(
            terms,
            ttl=min(terms.ttl, remains) if renewed else remains,
            wait=min(wait, remains),
            on_lost=terms.on_lost if input.executor is None or callable(terms.on_lost) else "raise_at_exit",
            limit=clock.now() + remains,
        )


def _remaining(info: activity.Info) -> float:
    """Seconds until Temporal gives up on the activity. Only the server's times are compared."""
    timeout = info.schedule_to_close_timeout
    if timeout is None or not timeout or timeout > LONGEST:
        raise calls.misuse(
            f"activity {info.activity_type} has @needs_lock, and its schedule_to_close_timeout is missing: set it, "
            "as the lock lasts no longer"
        )
    remains = (timeout - (info.started_time - info.scheduled_time)).total_seconds()
    if remains <= 0:
        raise ApplicationError(f"no time remains for activity {info.activity_type}", type="LockTimeout")
    return remains


def _names(guard: Guard, input: ExecuteActivityInput) -> tuple[str, ...]:
    args = tuple(input.args)
    if inspect.ismethod(input.fn):
        args = (input.fn.__self__, *args)
    elif decorator.guard_of(input.fn) is None:
        args = (input.fn, *args)
    return guard.names(args, {})


def _inside(guard: Guard, held: AsyncHeld, input: ExecuteActivityInput) -> ExecuteActivityInput:
    """The same activity, so that it knows of its lock wherever it runs."""
    term = held._term
    if _in_other_process(input):
        wanted = term.grant.wanted
        function = Carried(input.fn, guard.shown, wanted, held.tokens, term.deadline)
        return dataclasses.replace(input, fn=function)
    if input.executor is not None:
        chain.push(guard, Held.seen(term))
    return input


def _in_other_process(input: ExecuteActivityInput) -> bool:
    executor = input.executor
    return executor is not None and not isinstance(executor, concurrent.futures.ThreadPoolExecutor)


def _for_temporal(error: LockError) -> ApplicationError:
    """The error by which Temporal knows whether, and when, to try again."""
    delay = None
    if error.retryable:
        seconds = min(error.retry_after if error.retry_after is not None else 1.0, LONGEST_DELAY)
        delay = datetime.timedelta(seconds=max(seconds, 0.2) * random.uniform(1.0, 1.5))  # noqa: S311
    return ApplicationError(
        str(error), type=type(error).__name__, non_retryable=not error.retryable, next_retry_delay=delay
    )
