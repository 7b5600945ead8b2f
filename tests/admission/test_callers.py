"""The secret in the webhooks' paths. How it is shared and published is tried on a real API server."""

from __future__ import annotations

import datetime

import pytest

from assetlock.admission.upkeep.callers import LIFE, NONE, PathSecret

NOW = datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)
FIRST = NONE.renewed(NOW)


def test_a_secret_can_not_be_guessed_and_no_two_are_alike() -> None:
    assert len(FIRST.present) > 40
    assert FIRST.present != NONE.renewed(NOW).present


@pytest.mark.parametrize(
    "given", ["", "fence", FIRST.present[:-1], f"{FIRST.present}x", "ä", "\udcff"], ids=list("abcdef")
)
def test_nothing_else_is_taken_for_it(given: str) -> None:
    assert FIRST.admits(FIRST.present)
    assert not FIRST.admits(given)
    assert not NONE.admits(given)


def test_the_one_before_stays_good_until_the_next() -> None:
    second = FIRST.renewed(NOW)
    assert second.admits(FIRST.present)
    assert not second.renewed(NOW).admits(FIRST.present)


def test_it_is_changed_when_its_time_is_over_or_nobody_knows_how_old_it_is() -> None:
    assert not FIRST.is_due(NOW + LIFE)
    assert FIRST.is_due(NOW + LIFE + datetime.timedelta(seconds=1))
    assert PathSecret("a", "", "yesterday").is_due(NOW)
