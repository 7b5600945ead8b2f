"""The kept mutants still fit the code that they are planted in."""

from __future__ import annotations

import pathlib
import shutil

import pytest

from tests.mutants.kept import MUTANTS, Mutant
from tests.mutants.run import ROOT, planted


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_mutant_can_be_planted(mutant: Mutant, tmp_path: pathlib.Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    planted(mutant, tmp_path)
    changed = (tmp_path / "src" / "assetlock" / mutant.module).read_text()
    compile(changed, mutant.module, "exec")
