"""Label selectors: against the simulator's own reading of kubectl's notation, and the index against trying each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assetlock.core.selection import SelectorIndex, described, selects
from assetlock.model.selector import LabelSelector, Requirement
from tests.sim import selection as simulated

KEYS = st.sampled_from(["app", "tier", "example.com/team"])
VALUES = st.sampled_from(["", "a", "b", "c.d_e-f"])
LABELS = st.dictionaries(KEYS, VALUES)


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    values = draw(st.lists(VALUES, min_size=1, max_size=3)) if operator in ("In", "NotIn") else []
    return Requirement(key=draw(KEYS), operator=operator, values=values)


SELECTORS = st.builds(
    LabelSelector, match_labels=LABELS, match_expressions=st.lists(requirements(), max_size=3)
)


@given(SELECTORS, LABELS)
def test_what_is_selected_is_what_kubectl_would_list(selector: LabelSelector, labels: dict[str, str]) -> None:
    listed = simulated.labels(described(selector))
    assert selects(selector, labels) == listed({"metadata": {"labels": labels}})


@given(st.lists(SELECTORS, max_size=8), st.sets(st.integers(0, 7)), LABELS)
def test_the_index_finds_those_and_only_those_that_select(
    added: list[LabelSelector], discarded: set[int], labels: dict[str, str]
) -> None:
    index = SelectorIndex()
    for selector in added:
        index.add(selector)
    gone = [selector for number, selector in enumerate(added) if number in discarded]
    for selector in gone:
        index.discard(selector)
    assert index.selecting(labels) == {s for s in added if s not in gone and selects(s, labels)}


def test_labels_that_are_not_there_are_neither_in_nor_existing() -> None:
    absent = LabelSelector(match_expressions=[Requirement(key="app", operator="NotIn", values=["a"])])
    present = LabelSelector(match_expressions=[Requirement(key="app", operator="Exists")])
    assert selects(absent, {})
    assert not selects(present, {})
    assert selects(present, {"app": ""})
