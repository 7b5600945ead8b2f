"""JSON of any depth."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assetlock.kube.decoding import DEEPEST, decode, decode_telling, shallow

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
)


@given(JSON)
def test_what_is_not_deep_is_left_as_it_is(value: object) -> None:
    text = json.dumps(value).encode()
    assert shallow(text) == text
    assert decode_telling(text) == (value, True)


@given(JSON, st.integers(5000, 20_000))
def test_what_stands_beside_a_deep_value_is_kept(value: object, depth: int) -> None:
    nested = "[" * depth + json.dumps(value) + "]" * depth
    found, is_whole = decode_telling(
        f'{{"before": 1, "deep": {nested}, "after": {json.dumps(value)}}}'.encode()
    )
    assert not is_whole
    assert (found["before"], found["after"]) == (1, value)


def test_brackets_and_quotes_in_strings_do_not_count() -> None:
    text = json.dumps({"a": '[{"' * 500 + "\\"}).encode()
    assert shallow(text) == text


def test_exactly_the_deepest_level_is_kept() -> None:
    text = b"[" * DEEPEST + b"]" * DEEPEST
    assert shallow(text) == text
    assert shallow(b"[" + text + b"]") == b"[" * DEEPEST + b"null" + b"]" * DEEPEST


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 2000, b"]" * 2000, b'"\xff"'])
def test_what_is_not_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError):
        decode(text)
