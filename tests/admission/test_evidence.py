"""Whether an admitted write was made is told by the object afterwards."""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from assetlock.admission.upkeep.evidence import Evidence, MadeWrites, evidence_of
from assetlock.kube.api import Api
from assetlock.kube.transport import Reply
from tests.admission.reviews import config_map, review, user

BOB = user("bob")
LATER = datetime.datetime(2030, 1, 1, 1, tzinfo=datetime.UTC)


def thing(version: int = 7, uid: str = "u1", **metadata: Any) -> dict[str, Any]:
    return config_map(uid=uid, resourceVersion=str(version), **metadata)


def written(manager: str, time: str, **more: str) -> dict[str, str]:
    return {"manager": manager, "operation": "Update", "time": time, **more}


BEFORE = [
    written("kubectl", "2030-01-01T00:00:00Z"),
    written("kubelet", "2030-01-01T00:00:00Z", subresource="status"),
]


def evidence(operation: str = "UPDATE", **metadata: Any) -> Evidence:
    old = thing(managedFields=BEFORE, **metadata)
    found = evidence_of(review(operation, by=BOB, old=old, new=old), LATER)
    assert found is not None
    return found


def test_a_write_shows_by_a_later_version_with_other_managed_fields() -> None:
    after = [written("kubectl", "2030-01-01T00:00:01Z"), BEFORE[1]]
    assert evidence().shows(thing(8, managedFields=after))
    assert not evidence().shows(thing(7, managedFields=BEFORE))


@pytest.mark.parametrize(
    "another",
    [
        written("kubelet", "2030-01-01T00:00:09Z", subresource="status"),
        written("assetlock", "2030-01-01T00:00:09Z"),
    ],
    ids=["a status", "our own stamp"],
)
def test_what_others_write_all_the_time_shows_nothing(another: dict[str, str]) -> None:
    assert not evidence().shows(thing(9, managedFields=[BEFORE[0], another]))


def test_a_write_without_managed_fields_shows_by_the_version() -> None:
    bare = evidence_of(review("UPDATE", by=BOB, old=thing(), new=thing()), LATER)
    assert bare is not None
    assert (bare.shows(thing(8)), bare.shows(thing(7)), bare.shows(None)) == (True, False, False)


def test_another_object_of_that_name_shows_no_update_but_a_deletion() -> None:
    assert not evidence().shows(thing(9, uid="u2"))
    assert evidence("DELETE").shows(thing(9, uid="u2"))


def test_a_deletion_shows_when_the_object_is_gone_or_going() -> None:
    deletion = evidence("DELETE")
    assert deletion.shows(None)
    assert deletion.shows(thing(8, deletionTimestamp="2030-01-01T00:00:01Z"))
    assert not deletion.shows(thing(8))


def test_a_creation_shows_when_the_object_is_there() -> None:
    creation = evidence_of(review("CREATE", by=BOB, new=thing()), LATER)
    assert creation is not None
    assert (creation.shows(thing()), creation.shows(None)) == (True, False)


def test_of_an_exec_nothing_ever_shows() -> None:
    assert evidence_of(review("CONNECT", by=BOB), LATER) is None


def test_right_after_another_write_in_the_same_second_the_version_alone_is_enough() -> None:
    old = thing(managedFields=BEFORE)
    at_once = evidence_of(review("UPDATE", by=BOB, old=old, new=old), LATER.replace(hour=0, second=1))
    assert at_once is not None
    assert at_once.shows(thing(8, managedFields=BEFORE))


def test_right_after_another_write_a_stamp_of_ours_shows_nothing() -> None:
    now = datetime.datetime(2030, 1, 1, 0, 0, 1, tzinfo=datetime.UTC)
    old = thing(managedFields=BEFORE)
    fresh = evidence_of(review("UPDATE", by=BOB, old=old, new=old), now)
    assert fresh is not None
    stamped = [*BEFORE, written("assetlock", "2030-01-01T00:00:01Z")]
    assert not fresh.shows(thing(8, managedFields=stamped))
    assert fresh.shows(thing(8, managedFields=BEFORE))


class OneObject:
    """Has one object, in its second version."""

    async def request(self, *_: Any, **__: Any) -> Reply:
        body = thing(8, managedFields=[written("kubectl", "2030-01-01T00:00:01Z")])
        return Reply(200, {}, json.dumps(body).encode())

    async def close(self) -> None: ...

    def stream(self, *_: Any, **__: Any) -> AsyncIterator[bytes]:
        raise NotImplementedError


async def test_a_review_of_something_odd_keeps_no_other_write_from_being_seen() -> None:
    seen: list[str] = []
    shown = asyncio.Event()
    writes = MadeWrites(Api(OneObject()), now=lambda: LATER)
    odd = review("UPDATE", by=user("mallory"), old=thing(name=".."), new=thing(name=".."))
    writes.once_made(odd, lambda: seen.append("odd"))
    old = thing(managedFields=BEFORE)
    writes.once_made(review("UPDATE", by=BOB, old=old, new=old), shown.set)
    running = asyncio.create_task(writes.run())
    async with asyncio.timeout(30):
        await shown.wait()
    running.cancel()
    assert seen == []
