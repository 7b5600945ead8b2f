"""The options of commands that ask for a lock."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from assetlock.cli import _names

if TYPE_CHECKING:
    from assetlock.client.session.requests import Request

R = TypeVar("R")

HOLDER_ID_VARIABLE = "ASSETLOCK_HOLDER_ID"

_OPTIONS = (
    click.option(
        "--ttl", type=_names.Duration(10.0), help="How long the lock lasts. Default: the asset's defaultTTL."
    ),
    click.option(
        "--wait", type=_names.Duration(), default="0s", show_default=True, help="How long to queue for it."
    ),
    click.option(
        "--mode",
        type=click.Choice(("exclusive", "shared"), case_sensitive=False),
        default="exclusive",
        show_default=True,
        help="The whole asset, or one slot of its capacity.",
    ),
    click.option("--shared", is_flag=True, help="The same as --mode shared."),
    click.option("--reason", help="What it is for: others see it."),
    click.option(
        "--holder-id",
        envvar=HOLDER_ID_VARIABLE,
        help=f"Your own name for this run, such as a build. Default: ${HOLDER_ID_VARIABLE}, else the lock's name.",
    ),
    click.option(
        "-E",
        "--conflict-exit-code",
        type=click.IntRange(0, 255),
        default=os.EX_TEMPFAIL,
        show_default=True,
        help="The exit code if another holds it, or the wait is over.",
    ),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing while it waits."),
)


def options(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command these options, and pass it a function ``ask(namespace)`` for the `Request` they amount to."""

    @functools.wraps(command)
    def with_request(*args: Any, **given: Any) -> R:
        names = ("assets", "ttl", "wait", "mode", "shared", "reason", "holder_id")
        asked = {name: given.pop(name) for name in names}
        shared = asked.pop("shared")
        asked["mode"] = "Shared" if shared else asked["mode"].capitalize()

        def ask(namespace: str) -> Request:
            from assetlock.client.session.requests import Request

            return Request(namespace=namespace, **asked)

        return command(*args, ask=ask, **given)

    decorated: Callable[..., R] = with_request
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def conflict_code(error: Exception, code: int) -> None:
    """Have a refusal end with the exit code that was asked for."""
    from assetlock.client.session.requests import NotAcquired

    if isinstance(error, NotAcquired) and error.exit_code == os.EX_TEMPFAIL:
        error.exit_code = code
