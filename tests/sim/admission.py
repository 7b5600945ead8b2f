"""Admission as the real server does it: inside the read-modify-write loop, on the object that is then compared.

A plugin's `mutate` may return a changed object, its `validate` may raise a `Refusal`; both may be coroutines that
take (virtual) time. If the stored object changes meanwhile, the request is decided and admitted anew.
"""

import dataclasses
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tests.sim.kinds import Served
from tests.sim.store import Json


@dataclass(frozen=True, slots=True)
class User:
    """Who asks: what authentication found out."""

    name: str
    groups: tuple[str, ...] = ("system:authenticated",)
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict)

    def info(self) -> Json:
        """As `userInfo` in an AdmissionReview."""
        info: Json = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            info["uid"] = self.uid
        if self.extra:
            info["extra"] = self.extra
        return info


ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))


@dataclass(frozen=True, slots=True)
class Attributes:
    """One request in front of one stored object. `old` is None for CREATE, `new` is None for DELETE."""

    operation: str
    served: Served
    namespace: str
    name: str
    subresource: str
    old: Json | None
    new: Json | None
    user: User
    dry_run: bool = False


Mutate = Callable[[Attributes], Json | Awaitable[Json | None] | None]
Validate = Callable[[Attributes], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Plugin:
    """A mutating and a validating half; either may be missing. `mutate` returns None to leave the object alone."""

    mutate: Mutate | None = None
    validate: Validate | None = None


async def _settle(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def mutate(plugins: list[Plugin], attributes: Attributes) -> Json | None:
    """Run all mutating halves in order; each sees what the one before made."""
    for plugin in plugins:
        if plugin.mutate is not None:
            changed = await _settle(plugin.mutate(attributes))
            if changed is not None:
                attributes = dataclasses.replace(attributes, new=changed)
    return attributes.new


async def validate(plugins: list[Plugin], attributes: Attributes) -> None:
    """Run all validating halves; the first to raise decides."""
    for plugin in plugins:
        if plugin.validate is not None:
            await _settle(plugin.validate(attributes))
