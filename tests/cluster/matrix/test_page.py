"""The parts of the page that need no cluster."""

from tests.cluster.matrix import page


def test_the_page_lists_what_can_not_be_tried_and_why() -> None:
    assert page.shown(page.IMPOSSIBLE) == page.what_can_not_be()
