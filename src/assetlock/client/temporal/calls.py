"""Tells a decorated function that Temporal's worker runs whether the worker has its lock.

Loaded only where the program has loaded Temporal's SDK.
"""

from __future__ import annotations

import contextvars

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError

MISUSE = "LockMisuse"
"""The type of errors that only a change of the program helps against."""

guarded_activity: contextvars.ContextVar[str | None] = contextvars.ContextVar(
    "assetlock-activity", default=None
)
"""The function that the worker has locked for, in this activity."""


def is_guarded(shown: str) -> bool:
    """Whether the worker has the lock for a call of this function; raises where it should have and has not."""
    if workflow.in_workflow():
        raise misuse(f"{shown} has @needs_lock and was called in a workflow: only activities can be locked")
    if not activity.in_activity():
        return False
    if guarded_activity.get() == shown:
        return True
    raise misuse(
        f"{shown} has @needs_lock and was called in the activity {activity.info().activity_type}, whose worker did "
        "not lock for it: put @needs_lock on the activity itself, and LockInterceptor() into the interceptors of the "
        "worker; within an activity use `with lock(...)`"
    )


def misuse(message: str) -> ApplicationError:
    """An error that no retry helps against."""
    return ApplicationError(message, type=MISUSE, non_retryable=True)
