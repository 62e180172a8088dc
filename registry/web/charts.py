"""Small charts as SVG, drawn on the server: numbers become places, and nothing else is in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from registry.db.read.listing import Facet

MONTHS: Final = 24
"""Months that a histogram shows at most, the last."""

HEIGHT: Final = 40


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a histogram: its place and height, as SVG has them, and what it stands for."""

    x: int
    y: int
    height: int
    value: str
    count: int


def months(counts: Sequence[Facet]) -> list[Bar]:
    """Return a histogram of counts by month; months without any are included."""
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
    """A line from one month to another: its points, as SVG has them, in 600 x 120."""

    points: str
    first: str
    last: str


def growth(counts: Sequence[Facet]) -> Line | None:
    """Return the line of how many there were by the end of each month; None: of no month."""
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
    """Tell whether a text is a month; a database of another user may have any text."""
    year, _, month = text.partition("-")
    return len(text) == 7 and year.isdecimal() and month.isdecimal() and 1 <= int(month) <= 12  # noqa: PLR2004


def _between(first: str, last: str, most: int) -> list[str]:
    """Return the months from one to another, the last ``most`` of them."""
    begin, end = (int(month[:4]) * 12 + int(month[5:]) - 1 for month in (first, last))
    begin = max(begin, end - most + 1)
    return [f"{number // 12:04}-{number % 12 + 1:02}" for number in range(begin, end + 1)]
