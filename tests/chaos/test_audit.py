"""The audit of etcd's history accepts what holders write, and finds what anybody else does."""

from __future__ import annotations

from typing import Any

import pytest

from assetlock.core import names
from assetlock.core.fence.stamp import Stamp, StampedHolder
from assetlock.core.identity import Identity
from tests.chaos.audit import Audit, Auditor
from tests.chaos.clients import NAMESPACE
from tests.chaos.etcd import Revision

Change = tuple[str, dict[str, Any] | None]
LOCKS = f"/registry/{names.GROUP}/assetlocks/{NAMESPACE}"
ASSET = f"/registry/{names.GROUP}/assets/{NAMESPACE}/vm"
TARGET = f"/registry/configmaps/{NAMESPACE}/vm"


def lock(user: str, token: int, state: str = "Held") -> Change:
    spec = {"assetName": "vm", "holder": {"username": user}}
    return f"{LOCKS}/lock-{token}", {"spec": spec, "status": {"state": state, "fencingToken": token}}


def deleted(token: int) -> Change:
    return f"{LOCKS}/lock-{token}", None


def mark(token: int) -> Change:
    return ASSET, {"status": {"fencingToken": token}}


def content(value: str, stamped: tuple[str, int] | None = None) -> Change:
    """The target as somebody left it, with the stamp that it carries from then on."""
    meta: dict[str, Any] = {"name": "vm", "uid": "vm"}
    if stamped:
        stamp = Stamp("vm", (StampedHolder(stamped[1], Identity(stamped[0])),), ())
        meta["labels"] = {names.FENCED_LABEL: "true"}
        meta["annotations"] = {names.stamp_key("vm", NAMESPACE): str(stamp)}
    return TARGET, {"metadata": meta, "data": {"value": value}}


ALICE, BOB = ("alice", 1), ("bob", 2)
ALICE_HOLDS = (content(""), mark(1), content("", ALICE), lock(*ALICE))
BOB_FOLLOWS = (lock(*ALICE, "Released"), mark(2), content("1 alice 1", BOB), lock(*BOB))


def walked(*changes: Change) -> Audit:
    return Auditor().walk(Revision(number, *change) for number, change in enumerate(changes, 1))


def test_holders_who_write_in_turn_break_nothing() -> None:
    audit = walked(*ALICE_HOLDS, content("1 alice 1", ALICE), *BOB_FOLLOWS, content("2 bob 1", BOB))
    assert audit.broken == []
    assert (audit.grants, audit.by_holders, audit.while_free) == (2, 2, 0)


def test_anybody_writes_before_the_stamp_and_after_it_is_gone() -> None:
    free = (content(""), content("0 mallory 1"))
    held = (mark(1), content("0 mallory 1", ALICE), lock(*ALICE))
    over = (lock(*ALICE, "Expired"), content("0 mallory 1"), content("0 mallory 2"))
    audit = walked(*free, *held, *over)
    assert audit.broken == []
    assert audit.while_free == 2


@pytest.mark.parametrize(
    ("what", "changes", "said"),
    [
        (
            "a stranger writes while one holds",
            (*ALICE_HOLDS, content("0 mallory 1", ALICE)),
            "revision 5: mallory with token 0 changed vm",
        ),
        (
            "a stranger writes in the moment after, while the stamp is there",
            (*ALICE_HOLDS, deleted(1), content("0 mallory 1", ALICE)),
            "revision 6: mallory changed vm, which was stamped for",
        ),
        (
            "an old holder writes after the next was told",
            (*ALICE_HOLDS, content("1 alice 1", ALICE), *BOB_FOLLOWS, content("1 alice 2", BOB)),
            "revision 10: alice with token 1 changed vm",
        ),
        (
            "the holder writes with a token that is not the present one",
            (*ALICE_HOLDS, content("7 alice 1", ALICE)),
            "alice with token 7 changed vm",
        ),
        ("two are told that they hold", (*ALICE_HOLDS, mark(2), lock(*BOB)), "was announced while"),
        (
            "a token is given again",
            (*ALICE_HOLDS, lock(*ALICE, "Released"), lock("bob", 1)),
            "was announced after token 1",
        ),
        ("the high-water mark falls", (*ALICE_HOLDS, mark(0)), "the high-water mark of vm fell to 0"),
        (
            "somebody empties it",
            (*ALICE_HOLDS, content("1 alice 1", ALICE), content("", ALICE)),
            "no client wrote",
        ),
        ("the target is deleted", (*ALICE_HOLDS, (TARGET, None)), "vm was deleted"),
    ],
)
def test_what_breaks_the_promise_is_found(what: str, changes: tuple[Change, ...], said: str) -> None:
    [complaint] = walked(*changes).broken
    assert said in complaint, what
