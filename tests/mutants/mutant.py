"""What a mutant is, and who is to find it."""

from __future__ import annotations

import dataclasses

LONG = ("tests/core/test_selection.py", "tests/core/test_calendar.py", "tests/core/test_properties.py")
QUICK = ("tests/controller", "tests/kube", "tests/admission", "tests/core")
THOROUGH = ("tests/sim/test_controller.py", "tests/exhaustive", *LONG, "tests/fuzz")


@dataclasses.dataclass(frozen=True, slots=True)
class Mutant:
    """One plausible bug. ``old`` stands in the module exactly once.

    The module is a path below ``src/assetlock`` or, with ``manifests/`` before it, below the root. ``judges`` are
    the tests that must find it where a real API server is needed; by default those that need none. ``first`` is
    the one that is about this very thing: where it takes long to come to that, it is tried before all others.
    """

    name: str
    module: str
    old: str
    new: str
    judges: tuple[str, ...] = ()
    first: str = ""

    @property
    def path(self) -> str:
        """Where the module is, below the root."""
        return self.module if self.module.startswith("manifests/") else f"src/assetlock/{self.module}"

    @property
    def stages(self) -> tuple[tuple[str, ...], ...]:
        """What pytest is asked to run, the cheapest first: of the quick tests those of the module's own layer."""
        first = ((self.first,),) if self.first else ()
        if self.judges:
            return (*first, self.judges)
        own = f"tests/{self.module.partition('/')[0]}"
        quick = sorted(QUICK, key=lambda tests: tests != own)
        return (*first, (*(f"--ignore={tests}" for tests in LONG), *quick), THOROUGH)
