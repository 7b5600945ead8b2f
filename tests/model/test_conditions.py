"""Conditions by the API conventions."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from assetlock.model.conditions import MESSAGE_LIMIT, Condition, set_condition

MORNING = datetime.datetime(2026, 5, 4, 8, 0, tzinfo=datetime.UTC)
NOON = MORNING + datetime.timedelta(hours=4)


def ready(
    status: str,
    reason: str = "Ready",
    message: str = "",
    *,
    now: datetime.datetime = MORNING,
    after: Sequence[Condition] = (),
) -> list[Condition]:
    return set_condition(after, "Ready", status, reason, message, now=now, observed_generation=1)


def test_a_new_status_moves_the_transition_time() -> None:
    [condition] = ready("False", now=NOON, after=ready("True"))
    assert (condition.status, condition.last_transition_time) == ("False", NOON)


def test_the_same_status_with_another_reason_and_message_keeps_the_transition_time() -> None:
    [condition] = ready("True", "StillReady", "as ever", now=NOON, after=ready("True"))
    assert (condition.reason, condition.message) == ("StillReady", "as ever")
    assert condition.last_transition_time == MORNING


def test_setting_the_same_again_changes_nothing() -> None:
    assert ready("True", now=NOON, after=ready("True")) == ready("True")


def test_a_newer_generation_is_noted_without_a_transition() -> None:
    [condition] = set_condition(ready("True"), "Ready", "True", "Ready", "", now=NOON, observed_generation=2)
    assert (condition.observed_generation, condition.last_transition_time) == (2, MORNING)


def test_others_keep_their_place_and_their_content() -> None:
    before = [
        *ready("True"),
        *set_condition([], "Fenced", "True", "", "", now=MORNING, observed_generation=1),
    ]
    after = ready("False", now=NOON, after=before)
    assert [condition.type for condition in after] == ["Ready", "Fenced"]
    assert after[1] is before[1]


def test_what_was_given_is_left_alone() -> None:
    before = ready("True")
    ready("False", now=NOON, after=before)
    assert before == ready("True")


def test_a_message_too_long_for_the_api_server_is_cut_short() -> None:
    [condition] = ready("False", "Broken", "x" * (MESSAGE_LIMIT + 1))
    assert len(condition.message) == MESSAGE_LIMIT
