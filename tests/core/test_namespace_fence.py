"""What is written on a namespace, and read back."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from assetlock.core.fence.namespace_fence import (
    GuardedTarget,
    NamespaceFence,
    namespace_fence_of,
    unguardable,
)
from assetlock.core.fence.stamp import LONGEST_TOKEN, StampedHolder
from assetlock.core.identity import Identity
from assetlock.core.messages import is_printable
from assetlock.core.observation import ObservedTarget
from assetlock.model.asset import Target

NAMES = st.from_regex(r"[a-z][a-z0-9.-]{0,20}", fullmatch=True)
USERNAMES = st.text(min_size=1).filter(is_printable)
TARGETS = st.builds(GuardedTarget, NAMES, NAMES, st.lists(st.sampled_from(["attach", "exec"])).map(tuple))
HOLDERS = st.builds(StampedHolder, st.integers(1, 10**LONGEST_TOKEN - 1), st.builds(Identity, USERNAMES))


@given(st.lists(TARGETS).map(tuple), st.lists(HOLDERS, min_size=1).map(tuple), st.lists(USERNAMES).map(tuple))
def test_a_guard_is_read_as_it_was_written(
    targets: tuple[GuardedTarget, ...], holders: tuple[StampedHolder, ...], exempt: tuple[str, ...]
) -> None:
    guard = NamespaceFence(targets, holders, exempt)
    assert NamespaceFence.parse(str(guard)) == guard


@given(st.text())
def test_anything_else_is_refused_and_nothing_worse(text: str) -> None:
    try:
        assert str(NamespaceFence.parse(text)) == text or " " in text
    except ValueError:
        assert namespace_fence_of({"key": text}, "key") is None


@pytest.mark.parametrize(
    ("namespace", "subresources", "said"),
    [
        ("team-a", {"scale", "status"}, None),
        ("kube-system", {"status"}, None),
        ("kube-system", {"eviction", "exec"}, "Pod app can be changed through its subresource eviction"),
        (None, {"scale"}, "not fenced for cluster-wide kinds"),
    ],
)
def test_what_can_not_be_guarded_is_said(
    namespace: str | None, subresources: set[str], said: str | None
) -> None:
    target = Target(api_version="v1", kind="Pod", name="app")
    problem = unguardable(ObservedTarget(target, namespace=namespace, subresources=frozenset(subresources)))
    assert problem is None if said is None else said in (problem or "")
