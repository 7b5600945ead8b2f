"""What is answered to a write: admitted, perhaps with changes, or refused with what the requester needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True)
class PatchOperation:
    """One step of a JSON patch."""

    op: str
    path: tuple[str, ...]
    value: Any = None

    def as_json(self) -> dict[str, Any]:
        """In the form of RFC 6902."""
        pointer = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in self.path)
        step: dict[str, Any] = {"op": self.op, "path": pointer}
        return step if self.op == "remove" else {**step, "value": self.value}


@dataclasses.dataclass(frozen=True, slots=True)
class Admitted:
    """The write goes through, with the patch applied."""

    patch: tuple[PatchOperation, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Dropped(Admitted):
    """The write goes through with nothing left of it: the patch puts the old content back."""


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """The write does not go through. ``causes`` has a line for each holder, or what is wrong with ``field``."""

    code: int
    reason: str
    message: str
    causes: tuple[str, ...] = ()
    retry_after: int | None = None
    field: str = ""


Verdict = Admitted | Refused


def locked(message: str, *, causes: tuple[str, ...] = (), retry_after: int = 1) -> Refused:
    """Somebody else holds it."""
    return Refused(423, "Locked", message, causes, max(1, retry_after))


def not_now(refused: Refused) -> Refused:
    """The same, in the form that makes ``kubectl drain`` say so and try again.

    Without Retry-After: with one, client libraries wait and repeat by themselves, and the user is told nothing.
    """
    return dataclasses.replace(refused, code=429, reason="TooManyRequests", retry_after=None)


def warned(verdict: Verdict, warnings: tuple[str, ...]) -> Verdict:
    """The verdict with these warnings; nobody is warned of what is refused."""
    if isinstance(verdict, Refused) or not warnings:
        return verdict
    return dataclasses.replace(verdict, warnings=(*verdict.warnings, *warnings))


def unavailable(message: str) -> Refused:
    """It can't be decided now."""
    return Refused(503, "ServiceUnavailable", message)


def forbidden(message: str) -> Refused:
    """The requester lacks a right."""
    return Refused(403, "Forbidden", message)


def invalid(field: str, message: str) -> Refused:
    """The field says something that can't be meant. kubectl shows the causes of such a refusal, not its message."""
    return Refused(422, "Invalid", f"{field}: {message}", (message,), field=field)


def changes(
    path: tuple[str, ...], present: Mapping[str, Any] | None, wanted: Mapping[str, Any | None]
) -> tuple[PatchOperation, ...]:
    """The steps that give the mapping at ``path`` the wanted items; ``None`` takes an item out.

    ``present`` is the mapping as it is, or ``None`` if there is none yet.
    """
    if present is None:
        whole = {key: value for key, value in wanted.items() if value is not None}
        return (PatchOperation("add", path, whole),) if whole else ()
    steps = []
    for key, value in wanted.items():
        if value is None and key in present:
            steps.append(PatchOperation("remove", (*path, key)))
        elif value is not None and present.get(key) != value:
            steps.append(PatchOperation("add", (*path, key), value))
    return tuple(steps)
