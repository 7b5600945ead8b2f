"""The kept mutants still fit the code that they are planted in."""

from __future__ import annotations

import yaml

from tests.mutants.mutant import Mutant
from tests.mutants.run import MUTANTS, ROOT


def _misfit(mutant: Mutant) -> str | None:
    """Why the mutant can't be planted; ``None`` when it can."""
    before = (ROOT / mutant.path).read_text(encoding="utf-8")
    if (found := before.count(mutant.old)) != 1:
        return f"its text is there {found} times"
    after = before.replace(mutant.old, mutant.new)
    if mutant.path.endswith(".py"):
        compile(after, mutant.module, "exec")
        return None
    same = list(yaml.safe_load_all(before)) == list(yaml.safe_load_all(after))
    return "it changes nothing" if same else None


def test_each_mutant_can_be_planted() -> None:
    misfits = {mutant.name: why for mutant in MUTANTS if (why := _misfit(mutant))}
    assert misfits == {}


def test_no_two_mutants_have_the_same_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
