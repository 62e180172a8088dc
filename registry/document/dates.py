"""Parse dates as people write them into UTC timestamps: ISO 8601 with seconds, ending in ``Z``."""

import calendar
import re
from datetime import UTC, date, datetime, timedelta
from typing import Final

_ZONE: Final = r"(?P<zone>z|utc|gmt|[+-]\d{2}:?\d{2}|[+-]\d{2})?"
_CLOCK: Final = (
    r"(?:(?:t|[ ,]{1,3}|[ ]at[ ])(?P<hour>\d{1,2}):(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2})(?:[.,]\d{1,9})?)?[ ]?" + _ZONE + ")?"
)
_END: Final = r"(?![\w:.-])"
_NUMERIC: Final = re.compile(
    r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})(?:\2(?P<day>\d{1,2})" + _CLOCK + ")?" + _END,
    re.IGNORECASE | re.ASCII,
)
_CHINESE: Final = re.compile(
    r"(?P<year>\d{4})\s?年\s?(?P<month>\d{1,2})\s?月(?:\s?(?P<day>\d{1,2})\s?日)?", re.ASCII
)
_WORDS: Final = (
    re.compile(  # 15 January 2026, 15th Jan 2026, Thu, 15 Jan 2026 10:00:00 GMT
        r"(?:[a-z]{3,9},?[ ])?(?P<day>\d{1,2})(?:st|nd|rd|th)?[ -](?P<name>[a-z]{3,9})\.?,?[ -]"
        r"(?P<year>\d{4})" + _CLOCK + _END,
        re.IGNORECASE | re.ASCII,
    ),
    re.compile(  # January 15, 2026; January 2026
        r"(?:[a-z]{3,9}day,?[ ])?(?P<name>[a-z]{3,9})\.?(?:[ ](?P<day>\d{1,2})(?:st|nd|rd|th)?)?,?"
        r"[ ](?P<year>\d{4})" + _CLOCK + _END,
        re.IGNORECASE | re.ASCII,
    ),
)
_COMPACT: Final = re.compile(r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})", re.ASCII)
_EPOCH: Final = re.compile(r"\d{10}(?:\d{3})?", re.ASCII)
_MONTHS: Final = {
    name.lower(): number
    for names in (calendar.month_name, calendar.month_abbr)
    for number, name in enumerate(names)
    if name
} | {"sept": 9}

_AGE: Final = re.compile(
    r"(?P<count>\d{1,6})\s?(?:(?P<unit>mo|[smhdwy])"
    r"|(?P<word>second|sec|minute|min|hour|day|week|month|year)s?)(?: ago)?",
    re.ASCII,
)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_MONTHS_A_YEAR: Final = 12
_MAX_LENGTH: Final = 100
"""Maximum number of characters of a text that is parsed as a date."""


def parse_date(text: str) -> str | None:
    """Return ``text`` as a UTC timestamp; None if it isn't a valid date.

    The accepted forms are ISO 8601, ``2026-01``, ``2026/01/15``, ``15 January 2026``, ``January 15,
    2026`` and seconds since 1970. If a space and words follow a date, they are ignored. A time
    without a zone is UTC.
    """
    found = _read(text)
    return None if found is None else _format(found[0])


def parse_when(text: str, now: datetime, *, end_of_day: bool = False) -> str:
    """Return the UTC timestamp for a date in a filter.

    ``text`` is a date, a timestamp, ``today``, ``yesterday`` or an age such as ``7d`` (s, m, h, d,
    w, mo, y) before ``now``. If ``end_of_day``, a day or month stands for its last second. Raises
    ValueError if ``text`` has another form; the message lists the accepted forms.
    """
    words = text.strip().lower()
    now = now.replace(tzinfo=UTC) if now.tzinfo is None else now.astimezone(UTC)
    if words == "now":
        return _format(now)
    if words in {"today", "yesterday"}:
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        day -= timedelta(days=words == "yesterday")
        return _format(_last_second(day, "day") if end_of_day else day)
    try:
        age = _AGE.fullmatch(words)
        if age:
            unit = age["unit"] or ("mo" if age["word"] == "month" else age["word"][0])
            return _format(_before(now, int(age["count"]), unit))
        found = _read(words)
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise ValueError(
            f"{text!r} is not a date, timestamp or age; write e.g. 2026-01-15, "
            "2026-01-15T09:30:00Z, 7d, 12h, 3w, 2mo, today"
        )
    moment, precision = found
    return _format(_last_second(moment, precision) if end_of_day else moment)


def moment(value: str | date | timedelta, *, end: bool = False) -> str:
    """Return the UTC timestamp for a value of a filter: text as in `parse_when`, or a Python value.

    A `timedelta` is an age: the time since the timestamp. If ``end``, a day stands for its last
    second. Times without a zone are UTC. Raises ValueError if the value is invalid; the message
    lists the accepted forms.
    """
    if isinstance(value, str):
        return parse_when(value, datetime.now(UTC), end_of_day=end)
    try:
        if isinstance(value, timedelta):
            return _format(datetime.now(UTC) - value)
        if isinstance(value, datetime):
            return _format(value.astimezone(UTC) if value.tzinfo else value)
        if isinstance(value, date):
            return parse_when(value.isoformat(), datetime.now(UTC), end_of_day=end)
    except OverflowError as error:
        raise ValueError(f"{value!r} is too long ago") from error
    raise ValueError(f"{type(value).__name__} is not a date, timestamp or age")


def _read(text: str) -> tuple[datetime, str] | None:
    """Return the time in ``text``, and its precision: ``second``, ``day`` or ``month``."""
    text = text.strip()[:_MAX_LENGTH]
    match = _NUMERIC.match(text) or _COMPACT.fullmatch(text) or _CHINESE.match(text)
    if match is None:
        if _EPOCH.fullmatch(text):
            return datetime.fromtimestamp(int(text[:10]), UTC), "second"
        match = _WORDS[0].match(text) or _WORDS[1].match(text)
        if match is None or match["name"].lower() not in _MONTHS:
            return None
    facts = match.groupdict()
    month = _MONTHS[facts["name"].lower()] if "name" in facts else int(facts["month"])
    day, hour, second = facts["day"], facts.get("hour"), facts.get("second")
    try:
        moment = datetime(
            int(facts["year"]),
            month,
            int(day or 1),
            int(hour or 0),
            int(facts.get("minute") or 0),
            # a datetime can't have the second 60 of a leap second
            min(int(second or 0), 59 if second == "60" else 60),
            tzinfo=UTC,
        ) - _offset(facts.get("zone"))
    except (ValueError, OverflowError):
        return None
    return moment, "second" if hour else "day" if day else "month"


def _offset(zone: str | None) -> timedelta:
    if not zone or zone[0] not in "+-":
        return timedelta()
    digits = zone.replace(":", "").ljust(5, "0")
    return datetime.strptime(digits, "%z").utcoffset() or timedelta()


def _before(now: datetime, count: int, unit: str) -> datetime:
    """Return ``now`` minus ``count`` units.

    If the resulting month is too short for the day, use the last day of the month.
    """
    if unit in _SECONDS:
        return now - timedelta(seconds=count * _SECONDS[unit])
    months = count * (_MONTHS_A_YEAR if unit == "y" else 1)
    year, month = divmod(now.year * _MONTHS_A_YEAR + now.month - 1 - months, _MONTHS_A_YEAR)
    if year < 1:
        raise ValueError(count)
    day = min(now.day, calendar.monthrange(year, month + 1)[1])
    return now.replace(year=year, month=month + 1, day=day)


def _last_second(moment: datetime, precision: str) -> datetime:
    if precision == "second":
        return moment
    if precision == "month":
        moment = moment.replace(day=calendar.monthrange(moment.year, moment.month)[1])
    return moment.replace(hour=23, minute=59, second=59)


def _format(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
