"""The scenarios that `make bench` runs. A file in `benchmarks/scenarios` adds its own with `@scenario`."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TypeAlias

from benchmarks.rows import Row
from benchmarks.stage import Stage

Measure: TypeAlias = Callable[[Stage], AsyncGenerator[Row, None]]
"""Yields each row as soon as it is measured, so that a failure later on loses none."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scenario:
    """Something to measure on a control plane of its own, in at most so many seconds."""

    name: str
    seconds: float
    measure: Measure


_registered: dict[str, Scenario] = {}


def scenario(*, seconds: float) -> Callable[[Measure], Measure]:
    """Register a function under its own name, with dashes."""

    def register(measure: Measure) -> Measure:
        name = measure.__name__.replace("_", "-")
        if name in _registered:
            raise ValueError(f"there are two scenarios {name}")
        _registered[name] = Scenario(name, seconds, measure)
        return measure

    return register


def scenarios(only: Sequence[str] = ()) -> list[Scenario]:
    """All of them, or those of these names; raises ValueError for a name that there is not."""
    package = importlib.import_module("benchmarks.scenarios")
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
    unknown = sorted(set(only) - _registered.keys())
    if unknown:
        raise ValueError(f"no scenario {', '.join(unknown)}; there are {', '.join(_registered)}")
    return [found for name, found in _registered.items() if not only or name in only]
