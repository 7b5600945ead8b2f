"""Windows in time: whole years, both changes of the clock, and what nobody can have meant."""

from __future__ import annotations

import datetime
import itertools
import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assetlock.core.windows.calendar import BadWindow, Calendar, Period, calendar_of
from assetlock.model.durations import parse_duration
from assetlock.model.window import MaintenanceWindowSpec
from tests.core.almanac import Almanac

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
DAY = datetime.timedelta(days=1)
SECOND = datetime.timedelta(seconds=1)


def at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC)


def window(schedule: str, duration: str, zone: str = "UTC") -> Calendar:
    return calendar_of(
        MaintenanceWindowSpec(schedule=schedule, duration=duration, time_zone=zone, asset_names=["vm-1"])
    )


def periods(calendar: Calendar, since: str, until: str) -> list[tuple[str, str]]:
    """The periods that start in between, as UTC hours and minutes with their day."""
    found = []
    period = calendar.next(at(since) - datetime.timedelta(microseconds=1))
    while period and period.start and period.end and period.start < at(until):
        found.append((f"{period.start:%m-%d %H:%M}", f"{period.end:%m-%d %H:%M}"))
        period = calendar.next(period.end - datetime.timedelta(microseconds=1))
    return found


@pytest.mark.parametrize(
    ("schedule", "duration"),
    [
        ("0 22 * * 6", "6h"),
        ("30 2 * * *", "45m"),
        ("0 1 * * *", "4h"),
        ("*/15 * * * *", "5m"),
        ("45 1,2 * MAR,APR,SEP-NOV SUN", "PT1H30M"),
        ("0 0 13 * 5", "P1D"),
        ("10 23 29 2 *", "P3D"),
    ],
)
@pytest.mark.parametrize("zone", ZONES)
def test_a_whole_year_is_as_the_wall_clock_says(schedule: str, duration: str, zone: str) -> None:
    year = at("2027-12-25"), at("2029-01-10")
    almanac = Almanac(schedule, zone, *year)
    calendar, length = window(schedule, duration, zone), parse_duration(duration)
    shifts = (-SECOND, 0 * SECOND, length - SECOND, length)
    edges = [fired + shift for fired in almanac.fired for shift in shifts]
    rng = random.Random(schedule + zone)
    anywhere = [year[0] + DAY * rng.uniform(5, 375) for _ in range(200)]
    moments = [*rng.sample(edges, min(len(edges), 400)), *anywhere]
    for moment in moments:
        if year[0] + 4 * DAY <= moment < year[1]:
            assert (calendar.current(moment) is not None) == almanac.active(length, moment), moment


fields = st.tuples(
    st.sampled_from(["0", "30", "0,30", "5-50/15", "*/20", "*", "59"]),
    st.sampled_from(["0", "1", "2", "3", "1-3", "*/2", "*", "22", "0,2,23"]),
    st.sampled_from(["*", "*", "29", "1-7", "*/2", "31"]),
    st.sampled_from(["*", "*", "MAR", "3,10,11", "4-10"]),
    st.sampled_from(["*", "*", "SUN", "0", "1-5", "6"]),
)
changes = st.sampled_from(
    [
        ("Europe/Berlin", "2026-03-29"),
        ("Europe/Berlin", "2026-10-25"),
        ("America/New_York", "2026-03-08"),
        ("America/New_York", "2026-11-01"),
        ("Australia/Lord_Howe", "2026-04-05"),
        ("Australia/Lord_Howe", "2026-10-04"),
        ("Asia/Kathmandu", "2026-06-01"),
        ("Africa/Cairo", "2026-04-24"),
        ("UTC", "2028-02-29"),
    ]
)


@given(
    parts=fields,
    change=changes,
    minutes=st.integers(1, 3000),
    offset=st.integers(-36 * 3600, 36 * 3600),
)
@settings(max_examples=60, deadline=None)
def test_around_a_change_of_the_clock_it_is_active_exactly_when_the_wall_clock_says(
    parts: tuple[str, ...], change: tuple[str, str], minutes: int, offset: int
) -> None:
    schedule, (zone, day) = " ".join(parts), change
    duration = datetime.timedelta(minutes=minutes)
    try:
        calendar = window(schedule, f"{minutes}m", zone)
    except BadWindow:
        assert "never" in _refusal(schedule=schedule, duration="1m", time_zone=zone)
        return
    almanac = Almanac(schedule, zone, at(day) - 5 * DAY, at(day) + 5 * DAY)
    moment = at(day) + datetime.timedelta(seconds=offset)
    assert (calendar.current(moment) is not None) == almanac.active(duration, moment)
    following = calendar.next(moment)
    if following and following.start and following.start < at(day) + 4 * DAY:
        assert calendar.current(following.start - SECOND) is None
        assert calendar.current(following.start) == following


@given(parts=fields, change=changes, minutes=st.integers(1, 3000), offset=st.integers(-36 * 3600, 36 * 3600))
@settings(max_examples=60, deadline=None)
def test_a_period_is_the_same_from_wherever_it_is_looked_at(
    parts: tuple[str, ...], change: tuple[str, str], minutes: int, offset: int
) -> None:
    try:
        calendar = window(" ".join(parts), f"{minutes}m", change[0])
    except BadWindow:
        return
    moment = at(change[1]) + datetime.timedelta(seconds=offset)
    period = calendar.current(moment)
    if period is None:
        period = calendar.next(moment)
    if period is None or period.start is None or period.end is None:
        return
    assert calendar.current(period.end) is None
    for seen in (
        calendar.current(period.start),
        calendar.current(period.end - SECOND),
        calendar.next(period.start - SECOND),
        calendar.last(period.end),
    ):
        assert seen is not None
        assert seen.start in (period.start, None), "or it is too far away to be known"
        assert seen.end in (period.end, None)


@pytest.mark.parametrize(
    ("schedule", "duration", "zone", "since", "found"),
    [
        # Berlin's hour from 2 to 3 does not exist on 29 March: 01:00 for 2 h ends at 04:00 on the wall.
        ("0 1 * * *", "2h", "Europe/Berlin", "2026-03-29", [("03-29 00:00", "03-29 02:00")]),
        ("30 2 * * *", "1h", "Europe/Berlin", "2026-03-29", [("03-29 01:00", "03-29 02:00")]),
        # It comes twice on 25 October: a fixed time happens at the first, and 4 h are 4 h.
        ("0 1 * * *", "4h", "Europe/Berlin", "2026-10-24T22:00", [("10-24 23:00", "10-25 03:00")]),
        ("0 2 * * *", "20m", "Europe/Berlin", "2026-10-25", [("10-25 00:00", "10-25 00:20")]),
        ("0 22 * * 6", "6h", "Europe/Berlin", "2026-10-24T12:00", [("10-24 20:00", "10-25 02:00")]),
        # Lord Howe's clock changes by half an hour.
        ("15 2 * * *", "30m", "Australia/Lord_Howe", "2026-10-03T14:00", [("10-03 15:30", "10-03 16:00")]),
        ("45 1 * * *", "1h", "Australia/Lord_Howe", "2026-04-04T13:00", [("04-04 14:45", "04-04 15:45")]),
        ("15 12 * * *", "1h", "Asia/Kathmandu", "2026-06-01", [("06-01 06:30", "06-01 07:30")]),
    ],
)
def test_nights_in_which_the_clocks_change(
    schedule: str, duration: str, zone: str, since: str, found: list[tuple[str, str]]
) -> None:
    until = (at(since) + datetime.timedelta(hours=12)).isoformat()[:16]
    assert periods(window(schedule, duration, zone), since, until) == found


def test_a_quarter_of_an_hour_stays_one_through_the_hour_that_comes_twice() -> None:
    starts = [
        start
        for start, _ in periods(
            window("*/15 * * * *", "5m", "Europe/Berlin"), "2026-10-25", "2026-10-25T02:00"
        )
    ]
    assert starts == [f"10-25 {hour:02}:{minute:02}" for hour in (0, 1) for minute in (0, 15, 30, 45)]


def test_a_clock_that_jumps_half_an_hour_loses_none_of_the_next_night() -> None:
    starts = periods(window("*/20 0 * * *", "5m", "Australia/Lord_Howe"), "2026-10-03T16:00", "2026-10-05")
    assert [start for start, _ in starts] == ["10-04 13:00", "10-04 13:20", "10-04 13:40"]


def test_one_that_is_asked_about_inside_the_second_half_past_two_says_what_it_said_in_the_first() -> None:
    calendar = window("30 2 * * *", "20m", "Europe/Berlin")
    first = Period(at("2026-10-25T00:30"), at("2026-10-25T00:50"))
    again = at("2026-10-25T01:35")
    assert calendar.current(again) is None
    assert calendar.last(again) == first
    assert (calendar.next(again) or first).start == at("2026-10-26T01:30")


def test_29_february_comes_every_four_years() -> None:
    calendar = window("0 0 29 2 *", "P1D")
    assert periods(calendar, "2026-01-01", "2033-01-01") == [("02-29 00:00", "03-01 00:00")] * 2
    assert calendar.last(at("2026-07-01")) == Period(at("2024-02-29"), at("2024-03-01"))


def test_one_that_is_longer_than_its_period_never_ends() -> None:
    calendar = window("0 * * * *", "2h")
    assert calendar.current(at("2026-07-01T12:34")) == Period(None, None)
    assert (calendar.next(at("2026-07-01")), calendar.last(at("2026-07-01"))) == (None, None)


@pytest.mark.parametrize(
    ("schedule", "duration"),
    [
        ("0 8-20 * * *", "12h"),
        ("@daily", "24h"),
        ("* * * * *", "30m"),
        ("0 9 * * 1-5", "72h"),
        ("0-58 0-22 * * *", "1h"),
        ("* * * 1 *", "1m"),
        ("*/7 * * * *", "7m"),
        ("0 0 29 2 *", "P366D"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca"])
def test_it_is_found_in_few_steps_whatever_a_window_says(schedule: str, duration: str, zone: str) -> None:
    now, calls = at("2026-07-01T12:34:56"), 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    calendar = window(schedule, duration, zone)
    sys.setprofile(count)
    try:
        calendar.current(now), calendar.next(now), calendar.last(now)
        list(itertools.islice(calendar.periods(now), 3))
    finally:
        sys.setprofile(None)
    assert calls < 60_000, "of which a millisecond has ten thousand"


@given(parts=fields, change=changes, minutes=st.integers(1, 3000), offset=st.integers(-36 * 3600, 36 * 3600))
@settings(max_examples=60, deadline=None)
def test_a_period_lasts_for_as_long_as_the_wall_clock_says_and_no_longer(
    parts: tuple[str, ...], change: tuple[str, str], minutes: int, offset: int
) -> None:
    schedule, duration = " ".join(parts), datetime.timedelta(minutes=minutes)
    try:
        calendar = window(schedule, f"{minutes}m", change[0])
    except BadWindow:
        return
    moment = at(change[1]) + datetime.timedelta(seconds=offset)
    almanac = Almanac(schedule, change[0], at(change[1]) - 5 * DAY, at(change[1]) + 5 * DAY)
    period = calendar.current(moment)
    if period is None:
        return
    start = max(period.start or at(change[1]) - 2 * DAY, at(change[1]) - 2 * DAY)
    end = min(period.end or at(change[1]) + 4 * DAY, at(change[1]) + 4 * DAY)
    within = [start, *(fired for fired in almanac.fired if start < fired < end), end]
    assert all(b - a <= duration for a, b in itertools.pairwise(within) if a in almanac.fired)


def test_occurrences_that_touch_are_one_period() -> None:
    calendar = window("0 8-17 * * 1-5", "1h")
    assert calendar.current(at("2026-07-01T12:30")) == Period(at("2026-07-01T08:00"), at("2026-07-01T18:00"))


def test_a_schedule_is_a_date_or_a_weekday_where_both_are_given_as_in_a_cronjob() -> None:
    starts = [start for start, _ in periods(window("0 0 13 * 5", "1h"), "2026-11-01", "2026-11-22")]
    assert starts == ["11-06 00:00", "11-13 00:00", "11-20 00:00"]
    starts = [start for start, _ in periods(window("0 0 */10 * 1", "1h"), "2026-11-01", "2026-11-15")]
    assert starts == ["11-01 00:00", "11-02 00:00", "11-09 00:00", "11-11 00:00"]


@pytest.mark.parametrize(
    ("macro", "schedule"), [("@hourly", "0 * * * *"), ("@Weekly", "0 0 * * SUN"), ("@yearly", "0 0 1 1 *")]
)
def test_macros_stand_for_schedules(macro: str, schedule: str) -> None:
    now = at("2026-07-01T12:34")
    assert window(macro, "1m").next(now) == window(schedule, "1m").next(now)


def test_one_start_and_end_happen_once() -> None:
    calendar = calendar_of(
        MaintenanceWindowSpec(start=at("2026-12-24"), end=at("2026-12-27"), asset_names=["vm-1"])
    )
    only = Period(at("2026-12-24"), at("2026-12-27"))
    assert (calendar.next(at("2026-12-01")), calendar.current(at("2026-12-01"))) == (only, None)
    assert (calendar.current(at("2026-12-24")), calendar.next(at("2026-12-24"))) == (only, None)
    assert (calendar.current(at("2026-12-27")), calendar.last(at("2026-12-27"))) == (None, only)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"schedule": "0 0 22 * * 6"}, "schedule: '0 0 22 * * 6' has 6 fields, not five"),
        ({"schedule": "0 25 * * *"}, "schedule: hour: '25' is not between 0 and 23"),
        ({"schedule": "25:00"}, "1 fields, not five"),
        ({"schedule": "0 0 30 2 *"}, "never comes"),
        ({"schedule": "0 0 31 4,6,9,11 *"}, "never comes"),
        ({"schedule": "0 0 * * 7"}, "day of the week: '7' is not between 0 and 6"),
        ({"schedule": "0 0 L * *"}, "day of the month: 'L'"),
        ({"schedule": "0 0 * * MON#2"}, "day of the week: 'MON#2'"),
        ({"schedule": "*/0 * * * *"}, "minute: '*/0' has no step"),
        ({"schedule": "0 20-4 * * *"}, "hour: '20-4' ends before it begins"),
        ({"schedule": "@every 1h"}, "schedule: '@every 1h' is not one of @yearly"),
        ({"schedule": "CRON_TZ=Europe/Berlin 0 22 * * 6"}, "goes into timeZone"),
        ({"schedule": "٣ 0 * * *"}, "minute: '٣' is not between"),
        ({"schedule": "0 0 1 1 *" + " " * 200}, "longer than 128"),
        ({"time_zone": "Europe/Atlantis"}, "timeZone: there is no time zone 'Europe/Atlantis'"),
        ({"time_zone": "Local"}, "timeZone: there is no time zone 'Local'"),
        ({"time_zone": "../../etc/passwd"}, "timeZone: there is no time zone"),
        ({"time_zone": "Europe"}, "timeZone: there is no time zone"),
        ({"duration": "P400D"}, "duration: P400D is not"),
        (
            {"schedule": None, "start": at("2026-01-02"), "end": at("2026-01-01")},
            "end: must be later than start",
        ),
        (
            {"schedule": None, "start": at("2026-01-01"), "end": at("2027-06-01")},
            "end: is more than 366 days",
        ),
        ({"schedule": None, "start": at("2026-01-01")}, "end: is missing"),
    ],
)
def test_what_nobody_can_have_meant_is_refused_with_the_field_named(
    changed: dict[str, object], said: str
) -> None:
    assert said in _refusal(**{"schedule": "0 22 * * 6", "duration": "6h", **changed})


def _refusal(**fields: object) -> str:
    spec = MaintenanceWindowSpec.model_construct(**{**MaintenanceWindowSpec().model_dump(), **fields})
    with pytest.raises(BadWindow) as refused:
        calendar_of(spec)
    return str(refused.value)
