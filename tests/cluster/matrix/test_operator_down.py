"""With nothing of ours running: the API server alone refuses."""

from tests.cluster.matrix.cells import Outage
from tests.cluster.matrix.checks import (
    test_every_requester_gets_what_the_rules_say,
    test_nothing_was_changed_by_what_was_refused,
    test_the_page_shows_what_was_observed,
)

__all__ = [
    "test_every_requester_gets_what_the_rules_say",
    "test_nothing_was_changed_by_what_was_refused",
    "test_the_page_shows_what_was_observed",
]

OUTAGE = Outage.OPERATOR
