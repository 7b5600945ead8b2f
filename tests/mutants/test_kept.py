"""The kept mutants still fit the code that they are planted in."""

from __future__ import annotations

import pathlib
import shutil

import pytest
import yaml

from tests.mutants.mutant import Mutant
from tests.mutants.run import MUTANTS, ROOT, planted


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_can_be_planted(mutant: Mutant, tmp_path: pathlib.Path) -> None:
    there = tmp_path / mutant.path
    there.parent.mkdir(parents=True)
    shutil.copy(ROOT / mutant.path, there)
    planted(mutant, tmp_path)
    changed = there.read_text(encoding="utf-8")
    if mutant.path.endswith(".py"):
        compile(changed, mutant.module, "exec")
    else:
        before, after = (
            list(yaml.safe_load_all(text)) for text in ((ROOT / mutant.path).read_text(), changed)
        )
        assert before != after


def test_no_two_mutants_have_the_same_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
