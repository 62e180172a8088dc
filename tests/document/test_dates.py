"""Dates as people write them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.document.dates import parse_date, parse_when

NOW = datetime(2026, 3, 31, 12, 30, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-15", "2026-01-15T00:00:00Z"),
        (" 2026-01-15 ", "2026-01-15T00:00:00Z"),
        ("2026-1-5", "2026-01-05T00:00:00Z"),
        ("2026/01/15", "2026-01-15T00:00:00Z"),
        ("2026.01.15", "2026-01-15T00:00:00Z"),
        ("2026-01", "2026-01-01T00:00:00Z"),
        ("20260115", "2026-01-15T00:00:00Z"),
        ("2026-01-15T09:30:00Z", "2026-01-15T09:30:00Z"),
        ("2026-01-15T09:30", "2026-01-15T09:30:00Z"),
        ("2026-01-15 09:30:00", "2026-01-15T09:30:00Z"),
        ("2026-01-15T09:30:00.123456Z", "2026-01-15T09:30:00Z"),
        ("2026-01-15T09:30:00+02:00", "2026-01-15T07:30:00Z"),
        ("2026-01-15T23:30:00-0500", "2026-01-16T04:30:00Z"),
        ("2026-01-15 09:30:00 +01", "2026-01-15T08:30:00Z"),
        ("2026-01-15 09:30 UTC", "2026-01-15T09:30:00Z"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
        ("2026-01-15 (first draft)", "2026-01-15T00:00:00Z"),
        ("15 January 2026", "2026-01-15T00:00:00Z"),
        ("15th Jan 2026", "2026-01-15T00:00:00Z"),
        ("January 15, 2026", "2026-01-15T00:00:00Z"),
        ("Jan 15 2026", "2026-01-15T00:00:00Z"),
        ("Sept. 3, 2025", "2025-09-03T00:00:00Z"),
        ("January 2026", "2026-01-01T00:00:00Z"),
        ("Thu, 15 Jan 2026 10:00:00 GMT", "2026-01-15T10:00:00Z"),
        ("2026年1月15日", "2026-01-15T00:00:00Z"),
        ("1768469400", "2026-01-15T09:30:00Z"),
        ("1768469400000", "2026-01-15T09:30:00Z"),
        ("0001-01-01", "0001-01-01T00:00:00Z"),
    ],
)
def test_a_date_is_read_as_utc(text, expected):
    assert parse_date(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "2026",
        "2026-13-01",
        "2026-02-30",
        "2026-00",
        "0000-01-01",
        "2026-01-15T25:00:00Z",
        "2026-01-15T10:00:00+99:00",
        "0001-01-01T00:00:00+01:00",
        "01/02/2026",
        "January",
        "99 January 2026",
        "15 Brumaire 2026",
        "2026-01-15-beta",
        "1.2.3",
        "२०२६-०१-१५",
        "1" * 100_000,
    ],
)
def test_what_is_no_date_that_exists_is_none(text):
    assert parse_date(text) is None


@given(st.text())
def test_no_text_makes_a_date_fail(text):
    parse_date(text)


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_is_written_is_read_again(moment):
    text = moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"
    assert parse_date(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("now", "2026-03-31T12:30:15Z"),
        ("today", "2026-03-31T00:00:00Z"),
        ("Yesterday", "2026-03-30T00:00:00Z"),
        ("45s", "2026-03-31T12:29:30Z"),
        ("30m", "2026-03-31T12:00:15Z"),
        ("12h", "2026-03-31T00:30:15Z"),
        ("7d", "2026-03-24T12:30:15Z"),
        ("7D", "2026-03-24T12:30:15Z"),
        ("7 days ago", "2026-03-24T12:30:15Z"),
        ("1 hour", "2026-03-31T11:30:15Z"),
        ("3w", "2026-03-10T12:30:15Z"),
        ("1mo", "2026-02-28T12:30:15Z"),
        ("2mo", "2026-01-31T12:30:15Z"),
        ("13mo", "2025-02-28T12:30:15Z"),
        ("1y", "2025-03-31T12:30:15Z"),
        ("2026-01-15", "2026-01-15T00:00:00Z"),
        ("2026-01-15T09:30:00+02:00", "2026-01-15T07:30:00Z"),
    ],
)
def test_a_filter_takes_dates_and_ages(text, expected):
    assert parse_when(text, NOW) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-15", "2026-01-15T23:59:59Z"),
        ("2026-02", "2026-02-28T23:59:59Z"),
        ("today", "2026-03-31T23:59:59Z"),
        ("yesterday", "2026-03-30T23:59:59Z"),
        ("2026-01-15T09:30:00Z", "2026-01-15T09:30:00Z"),
        ("7d", "2026-03-24T12:30:15Z"),
    ],
)
def test_until_a_day_includes_the_day(text, expected):
    assert parse_when(text, NOW, end_of_day=True) == expected


def test_the_clock_may_stand_in_any_zone():
    local = datetime(2026, 3, 31, 1, 0, tzinfo=timezone(timedelta(hours=9)))
    assert parse_when("today", local) == "2026-03-30T00:00:00Z"
    assert parse_when("today", local.replace(tzinfo=None)) == "2026-03-31T00:00:00Z"


@pytest.mark.parametrize("text", ["", "soon", "7", "7x", "-7d", "2026-99-99", "999999y", "999999w"])
def test_what_a_filter_can_not_mean_is_refused_with_examples(text):
    with pytest.raises(ValueError, match="2026-01-15"):
        parse_when(text, NOW)
