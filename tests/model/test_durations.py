"""Durations mean exactly what they say, in both notations; what is unclear is refused."""

from __future__ import annotations

import datetime
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assetlock.model.assetlock import AssetLockSpec
from assetlock.model.durations import ACCEPTED, parse_duration

MONTHS_OF_MICROSECONDS = 10**13


def written(microseconds: int, *, days: str, clock: str, units: str) -> str:
    """As a person would write it: the largest units first, what is zero left out."""
    day, rest = divmod(microseconds, 86_400 * 10**6) if days else (0, microseconds)
    hour, rest = divmod(rest, 3_600 * 10**6)
    minute, rest = divmod(rest, 60 * 10**6)
    second, fraction = divmod(rest, 10**6)
    seconds = f"{second}.{fraction:06}".rstrip("0") if fraction else str(second)
    parts = [(str(hour), units[0]), (str(minute), units[1]), (seconds, units[2])]
    time = "".join(number + unit for number, unit in parts if number != "0")
    return (f"P{day}{days}" if days else "") + (clock + time if time or not day else "")


@given(st.integers(1, MONTHS_OF_MICROSECONDS))
def test_any_length_of_time_survives_being_written_in_iso_8601(microseconds: int) -> None:
    text = written(microseconds, days="D", clock="T", units="HMS")
    assert parse_duration(text) == datetime.timedelta(microseconds=microseconds)


@given(st.integers(1, MONTHS_OF_MICROSECONDS))
def test_any_length_of_time_survives_being_written_as_kubernetes_does(microseconds: int) -> None:
    text = written(microseconds, days="", clock="", units="hms")
    assert parse_duration(text) == datetime.timedelta(microseconds=microseconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT30M", 1800),
        ("30m", 1800),
        ("P1DT12H", 129_600),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("PT0.5S", 0.5),
        ("500ms", 0.5),
        ("1s500ms", 1.5),
        ("P400D", 34_560_000),
        ("0s", 0),
        ("PT0S", 0),
        ("007s", 7),
    ],
)
def test_both_notations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text).total_seconds() == seconds


REFUSED = [
    "",
    " ",
    "banana",
    "5",
    "P",
    "PT",
    "P1DT",
    "P1Y",
    "P1M",
    "P1W",
    "-5m",
    "+5m",
    "-PT5M",
    "PT-5M",
    "1m1h",
    "1h 30m",
    "30m\n",
    "1d",
    "pt5m",
    "PT5m",
    "1e3s",
    ".5h",
    "5.h",
    "1,5h",
    "٣m",
    "PT1H30",
    "0.0000001s",
    "999999D",
    "P100000D",
    "1" * 65 + "s",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_unclear_is_refused_and_told_what_is_accepted(text: str) -> None:
    with pytest.raises(ValueError, match=f"{ACCEPTED}|use [0-9]+h or P[0-9]+D") as refusal:
        parse_duration(text)
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize(
    ("text", "meant"), [("2d", "48h or P2D"), ("30d", "720h or P30D"), ("1w", "168h or P7D")]
)
def test_who_writes_days_reads_what_to_write(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match=f'invalid duration "{text}": use {meant}'):
        parse_duration(text)
    parse_duration(meant.split()[0])


@given(st.text(alphabet="PTDHMSWYhms0123456789.-+ ", max_size=70))
def test_any_text_is_either_read_or_refused_and_can_be_added_to_a_date(text: str) -> None:
    try:
        length = parse_duration(text)
    except ValueError:
        return
    assert datetime.datetime(2100, 1, 1) + length


@given(st.from_regex(r"[0-9]{1,3}([.][0-9]{1,6})?[hms]", fullmatch=True))
def test_only_zero_has_no_digit_but_zero(text: str) -> None:
    assert bool(parse_duration(text)) == any(digit in text for digit in "123456789")


@pytest.mark.parametrize("text", ["PT30M", "30m", "0.50h", "90s"])
def test_a_duration_is_shown_as_it_was_written(text: str) -> None:
    spec = AssetLockSpec(asset_name="db", ttl=text, wait=text)
    assert spec.model_dump(mode="json", by_alias=True)["ttl"] == text


def test_a_lock_may_wait_no_time_but_not_last_no_time() -> None:
    assert AssetLockSpec(asset_name="db", wait="0s").wait == "0s"
    with pytest.raises(ValueError, match="longer than zero"):
        AssetLockSpec(asset_name="db", ttl="PT0S")


def test_reading_durations_loads_neither_pydantic_nor_asyncio() -> None:
    program = "import sys, assetlock.model.durations; print({'pydantic', 'asyncio'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
