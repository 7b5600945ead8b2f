"""What is to be shown of the matrix, whatever is down."""

from __future__ import annotations

import pytest
from tests.cluster.matrix import page
from tests.cluster.matrix.cells import Outage
from tests.cluster.matrix.expected import expected
from tests.cluster.matrix.trying import Observed, Row, rows


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]} | {row[1]}")
def test_every_requester_gets_what_the_rules_say(observed: Observed, outage: Outage, row: Row) -> None:
    outcomes = observed.outcomes[row]
    assert outcomes == {by: expected(*row, by, outage) for by in outcomes}


def test_nothing_was_changed_by_what_was_refused(observed: Observed) -> None:
    assert observed.changed == ()


def test_the_page_shows_what_was_observed(observed: Observed, outage: Outage) -> None:
    assert page.shown_for(outage) == page.section(outage, observed.outcomes)
