"""The checker accepts what a fenced lock may do, and nothing else."""

from __future__ import annotations

import pytest

from tests.chaos.checker import check
from tests.chaos.history import Grant, Operation, complete

SECOND = 1_000_000_000


def grant(token: int, call: int, told: int | None, *, ends: int, released: int | None = None) -> Grant:
    return Grant("vm", f"client-{token}", f"lock-{token}", call, ends, token, told, released)


def write(token: int, call: int, end: int | None, result: str = "ok", value: str = "") -> Operation:
    return Operation("vm", f"client-{token}", "write", call, token, value or f"by {token}", result, end)


def read(value: str, call: int, end: int) -> Operation:
    return Operation("vm", "reader", "read", call, value=value, end=end)


ONE_AFTER_THE_OTHER = [grant(1, 0, 2, ends=10, released=11), grant(2, 5, 13, ends=23)]


def result(operations: list[Operation], grants: list[Grant]) -> str:
    [verdict] = check(complete(operations, grants))
    found: str = verdict["result"]
    return found


@pytest.mark.parametrize(
    ("what", "operations"),
    [
        ("holders write in turn", [write(1, 3, 4), write(2, 14, 15), read("by 2", 16, 17)]),
        ("an old holder is refused", [write(1, 14, 15, "refused"), write(2, 16, 17)]),
        ("a lost write arrived", [write(1, 3, None, ""), read("by 1", 14, 15)]),
        ("a lost write did not arrive", [write(2, 14, 15), write(1, 3, None, ""), read("by 2", 16, 17)]),
        ("the old holder writes while the next is being granted", [write(1, 6, 12)]),
        (
            "a stranger writes before and is refused while one holds",
            [write(0, 0, 1), write(0, 3, 4, "refused")],
        ),
    ],
)
def test_what_a_fenced_lock_may_do_is_accepted(what: str, operations: list[Operation]) -> None:
    assert result(operations, ONE_AFTER_THE_OTHER) == "Ok", what


@pytest.mark.parametrize(
    ("what", "operations"),
    [
        ("an old holder's write commits after the next was told", [write(1, 14, 15)]),
        (
            "an old holder's lost write commits then",
            [write(1, 3, None, ""), write(2, 14, 15), read("by 1", 16, 17)],
        ),
        ("a stranger writes while one holds", [write(0, 3, 4)]),
        ("a holder is refused", [write(1, 3, 4, "refused")]),
        ("a read finds what was never written", [read("nonsense", 3, 4)]),
        ("an admitted write is lost", [write(1, 3, 4), read("", 5, 6)]),
    ],
)
def test_what_a_fenced_lock_must_never_do_is_found(what: str, operations: list[Operation]) -> None:
    assert result(operations, ONE_AFTER_THE_OTHER) == "Illegal", what


def test_many_lost_answers_leave_the_search_short() -> None:
    lost = [write(0, 3, None, "", f"lost {n}") for n in range(200)]
    found = [write(0, 30 + n, None, "", f"found {n}") for n in range(3)]
    reads = [read(f"found {n}", 60 + 2 * n, 61 + 2 * n) for n in range(3)]
    over = grant(1, 0, 2, ends=10, released=11)
    assert result([*lost, *found, *reads, write(0, 3, 4, "refused")], [over]) == "Ok"
    assert result([*lost, *found, *reads, write(0, 3, 4)], [over]) == "Illegal"


def test_grants_that_nobody_was_told_of_leave_the_search_short() -> None:
    clients = range(1, 5)
    untold = [grant(token, 3, None, ends=8 + token) for token in clients]
    told = grant(5, 3, 40, ends=60)
    strangers = [write(0, 41 + n, 42 + n, "refused") for n in range(30)]
    assert result(strangers, [*untold, told]) == "Ok"
    assert result([*strangers, write(4, 45, 46)], [*untold, told]) == "Illegal"


def test_two_who_hold_at_once_are_found() -> None:
    assert result([], [grant(1, 0, 2, ends=100), grant(2, 5, 13, ends=110)]) == "Illegal"


def test_a_token_that_is_given_again_is_found() -> None:
    again = [grant(1, 0, 2, ends=3, released=4), grant(1, 5, 13, ends=20)]
    assert result([], again) == "Illegal"


def test_a_grant_whose_answer_was_lost_explains_a_later_token() -> None:
    lost = [grant(1, 0, 2, ends=3, released=4), grant(2, 5, None, ends=9), grant(3, 6, 13, ends=20)]
    assert result([write(2, 8, 9)], lost) == "Ok"
