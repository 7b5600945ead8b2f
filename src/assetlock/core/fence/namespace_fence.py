"""The fence on what carries no labels: one annotation for each asset on a namespace that its targets are in.

A Scale, an Eviction or the options of exec show nothing of the object behind them, so no stamp is seen there; but
the policy inside the API server can read the namespace. The value has a line for each target whose subresources
are closed: resource and name, and what the asset closes besides scale and eviction. Then come the holders, on
lines like a stamp's. With no target on it, it only keeps the namespace from being deleted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from assetlock.core import names
from assetlock.core.fence.stamp import StampedHolder, holder_lines, holders_on
from assetlock.core.observation import ObservedNamespace, ObservedTarget
from assetlock.model.limits import MOST_NAMESPACE_ANNOTATIONS

ALWAYS = frozenset({"scale", "eviction"})
"""The subresources that are closed for every target that has them."""

CLOSABLE = ALWAYS | {"exec", "attach", "portforward", "proxy"}
"""And those that an asset may close besides."""

NEVER_GUARDED = "kube-system"
"""Nothing of ours may stand in the way of what runs the cluster."""


@dataclasses.dataclass(frozen=True, slots=True)
class GuardedTarget:
    """A target with subresources to close. ``resource`` has its group, as in ``deployments.apps``."""

    resource: str
    name: str
    closed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join([f"{self.resource}/{self.name}", *self.closed])

    @classmethod
    def parse(cls, text: str) -> GuardedTarget:
        """Read what ``str`` wrote; raises ValueError for anything else."""
        thing, *closed = text.split(" ")
        resource, _, name = thing.partition("/")
        if not resource or not name:
            raise ValueError(f"not a guarded target: {text!r}")
        return cls(resource, name, tuple(closed))


@dataclasses.dataclass(frozen=True, slots=True)
class NamespaceFence:
    """What one asset closes in one namespace, and for whom it stays open."""

    targets: tuple[GuardedTarget, ...]
    holders: tuple[StampedHolder, ...]
    exempt: tuple[str, ...] = ()

    @property
    def token(self) -> int:
        """The highest token in the guard; 0 when it names nobody."""
        return max((holder.token for holder in self.holders), default=0)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.targets), *holder_lines(self.holders, self.exempt)])

    @classmethod
    def parse(cls, text: str) -> NamespaceFence:
        """Read what ``str`` wrote; raises ValueError for anything else."""
        lines = text.split("\n")
        first = next((n for n, line in enumerate(lines) if line[:1].isdecimal()), len(lines))
        targets = tuple(GuardedTarget.parse(line) for line in lines[:first])
        return cls(targets, *holders_on(lines[first:]))


def needs_lines(target: ObservedTarget) -> bool:
    """Whether the target can be changed through what carries no labels."""
    return bool(target.subresources & ALWAYS)


def unguardable(target: ObservedTarget) -> str | None:
    """Why the subresources of this target can't be closed, ready to be read; ``None`` if they can."""
    if not needs_lines(target) or target.namespace not in (None, NEVER_GUARDED):
        return None
    named = f"{target.target.kind} {target.target.name}"
    ways = ", ".join(sorted(target.subresources & ALWAYS))
    where = "cluster-wide kinds" if target.namespace is None else f"what is in {NEVER_GUARDED}"
    return f"{named} can be changed through its subresource {ways}, which is not fenced for {where}"


def is_left_over(namespace: ObservedNamespace) -> bool:
    """Whether the namespace carries the label although nothing in it is closed."""
    is_guarded = any(
        key.endswith(names.NAMESPACE_FENCE_SUFFIX) and names.claimant(key) for key in namespace.annotations
    )
    return names.GUARDED_LABEL in namespace.labels and not is_guarded


def planted(namespace: ObservedNamespace) -> list[str]:
    """The annotations there that are not the operator's: no asset's, or from before the namespace had the label."""
    ours = [key for key in namespace.annotations if key.endswith(names.NAMESPACE_FENCE_SUFFIX)]
    is_guarded = namespace.labels.get(names.GUARDED_LABEL) == "true"
    return [key for key in ours if not is_guarded or names.claimant(key) is None]


def overfull(namespace: ObservedNamespace) -> str | None:
    """Why a fence on this namespace would not count, ready to be read; ``None`` if it would."""
    count = len(namespace.annotations)
    if count < MOST_NAMESPACE_ANNOTATIONS:
        return None
    return (
        f"namespace {namespace.name} has {count} annotations, of which the fence looks at no more than "
        f"{MOST_NAMESPACE_ANNOTATIONS}: remove some"
    )


def namespace_fence_of(annotations: Mapping[str, str], key: str) -> NamespaceFence | None:
    """The guard under ``key`` if there is one and it can be read."""
    try:
        return NamespaceFence.parse(annotations[key])
    except (KeyError, ValueError):
        return None
