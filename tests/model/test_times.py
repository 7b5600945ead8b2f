"""Times are written as the API server insists on, and are never shown before they have come."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from assetlock.model.asset import QueueEntry
from assetlock.model.lease import Lease, LeaseSpec
from assetlock.model.times import format_micro_time, format_time

NOON = datetime.datetime(2026, 5, 4, 12, 0, tzinfo=datetime.UTC)
LAST_SECOND = NOON.replace(second=59)


@pytest.mark.parametrize(
    ("microsecond", "digits"), [(0, "000000"), (1, "000001"), (500_000, "500000"), (999_999, "999999")]
)
def test_a_micro_time_always_has_six_digits(microsecond: int, digits: str) -> None:
    moment = LAST_SECOND.replace(microsecond=microsecond)
    assert format_micro_time(moment) == f"2026-05-04T12:00:59.{digits}Z"


@pytest.mark.parametrize("microsecond", [0, 1, 999_999])
def test_a_time_has_whole_seconds_and_is_not_rounded_up(microsecond: int) -> None:
    assert format_time(LAST_SECOND.replace(microsecond=microsecond)) == "2026-05-04T12:00:59Z"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-05-04T12:00:59Z", "2026-05-04T12:00:59.000000Z"),
        ("2026-05-04T12:00:59.999Z", "2026-05-04T12:00:59.999000Z"),
        ("2026-05-04T12:00:59.123456Z", "2026-05-04T12:00:59.123456Z"),
        ("2026-05-04T12:00:59.999999600Z", "2026-05-04T12:00:59.999999Z"),
        ("2026-05-04T12:00:59.9999996Z", "2026-05-04T12:00:59.999999Z"),
        ("2026-05-04T14:00:59.000000001+02:00", "2026-05-04T12:00:59.000000Z"),
    ],
)
def test_any_number_of_digits_is_read_and_six_are_written(text: str, written: str) -> None:
    spec = LeaseSpec.model_validate({"renewTime": text})
    assert spec.model_dump(mode="json", by_alias=True)["renewTime"] == written


@given(st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(9000, 1, 1), timezones=st.timezones()))
def test_what_is_written_is_read_as_the_same_moment(moment: datetime.datetime) -> None:
    spec = LeaseSpec.model_validate({"renewTime": format_micro_time(moment)})
    assert spec.renew_time == moment.astimezone(datetime.UTC)


def test_other_time_zones_are_written_in_utc() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=5, minutes=45))
    assert format_time(NOON.astimezone(zone)) == "2026-05-04T12:00:00Z"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValidationError, match="timezone"):
        QueueEntry.model_validate({"lock": "a", "identity": "b", "since": "2026-05-04T12:00:00"})


def test_a_missing_time_stays_missing() -> None:
    lease = Lease.model_validate({"metadata": {"name": "asset.db"}, "spec": {"renewTime": None}})
    assert lease.model_dump(mode="json", by_alias=True, exclude_none=True)["spec"] == {}
