"""Small charts as SVG, which the server draws.

The SVG contains only positions and sizes, and no text from skills.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from registry.db.read.listing import Facet

MONTHS: Final = 24
"""Maximum number of months in a histogram, which shows the latest months."""

HEIGHT: Final = 40


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a histogram: its position and height in SVG, its month and its count."""

    x: int
    y: int
    height: int
    value: str
    count: int


def months(counts: Sequence[Facet]) -> list[Bar]:
    """Return the bars of a histogram of counts by month, including months without a count."""
    known = {facet.value: facet.count for facet in counts if _is_month(facet.value)}
    if not known:
        return []
    last, first = max(known), min(known)
    span = _between(first, last, MONTHS)
    tallest = max(known[month] for month in span if month in known)
    bars = []
    for place, month in enumerate(span):
        count = known.get(month, 0)
        height = max(2, round(count / tallest * HEIGHT)) if count else 0
        bars.append(Bar(place * 10, HEIGHT - height, height, month, count))
    return bars


@dataclass(frozen=True, slots=True)
class Line:
    """A line from the first month to the last month, as points in an SVG of 600 x 120."""

    points: str
    first: str
    last: str


def growth(counts: Sequence[Facet]) -> Line | None:
    """Return a line for the total number at the end of each month; None if there is no month."""
    known = {facet.value: facet.count for facet in counts if _is_month(facet.value)}
    if not known:
        return None
    span = _between(min(known), max(known), 240)
    before = sum(count for month, count in known.items() if month < span[0])
    totals = list(accumulate((known.get(month, 0) for month in span), initial=before))
    step = 600 / max(1, len(totals) - 1)
    points = " ".join(
        f"{place * step:.1f},{120 - total / totals[-1] * 120:.1f}"
        for place, total in enumerate(totals)
    )
    return Line(points, span[0], span[-1])


def _is_month(text: str) -> bool:
    """Tell whether a text from the database is a month.

    The text may be invalid, because another user may have written it.
    """
    year, _, month = text.partition("-")
    return len(text) == 7 and year.isdecimal() and month.isdecimal() and 1 <= int(month) <= 12  # noqa: PLR2004


def _between(first: str, last: str, most: int) -> list[str]:
    """Return the months from ``first`` to ``last``, but only the last ``most`` of them."""
    begin, end = (int(month[:4]) * 12 + int(month[5:]) - 1 for month in (first, last))
    begin = max(begin, end - most + 1)
    return [f"{number // 12:04}-{number % 12 + 1:02}" for number in range(begin, end + 1)]
