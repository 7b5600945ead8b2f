"""Whether an admitted write was made is told by the object afterwards."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from assetlock.admission.upkeep.evidence import Evidence, evidence_of
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
