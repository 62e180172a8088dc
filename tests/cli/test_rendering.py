"""Widths, cuts, wraps, tables, escapes and sizes, as plain functions."""

from dataclasses import fields
from io import StringIO
from operator import itemgetter
from threading import Event
from threading import enumerate as threads

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.cli import escape, formatting, progress
from registry.cli.formatting import fit, width_of, wrap
from registry.cli.listing import Column, draw_table, emit
from registry.cli.progress import PATIENCE, SyncProgress
from registry.cli.session import Console, Session
from registry.model import Diagnostic, Parameter, SearchHit, Skill, SkillDetail, Source, record


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("日本", 4), ("e\u0301", 1), ("👩", 2), ("é", 1), ("❤\ufe0f", 2)],
)
def test_width(text, width):
    assert width_of(text) == width


@pytest.mark.parametrize(
    ("text", "width", "cut", "expected"),
    [
        ("abcdef", 6, "end", "abcdef"),
        ("abcdef", 4, "end", "abc…"),
        ("ab cdef", 4, "end", "ab…"),
        ("abcdef", 4, "start", "…def"),
        ("source/path/name", 10, "middle", "sou…h/name"),
        ("日本語", 5, "end", "日本…"),
        ("日本語", 4, "end", "日…"),
        ("日本語", 4, "start", "…語"),
        ("abc", 1, "end", "…"),
        ("abc", 0, "end", ""),
    ],
)
def test_fit(text, width, cut, expected):
    assert fit(text, width, cut) == expected


@given(st.text(), st.integers(0, 30), st.sampled_from(["end", "middle", "start"]))
def test_what_is_fitted_never_exceeds_its_room(text, width, cut):
    assert width_of(fit(text, width, cut)) <= width


@given(st.text(), st.integers(2, 30))
def test_wrapping_keeps_every_word_and_the_width(text, width):
    lines = list(wrap(text, width))
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(width_of(line) <= width for line in lines)


@given(
    st.lists(st.tuples(st.text(), st.text(), st.text()), min_size=1, max_size=5),
    st.integers(1, 120),
)
def test_no_row_of_a_table_is_wider_than_asked(rows, width):
    columns = [
        Column("FIRST", itemgetter(0)),
        Column("SECOND", itemgetter(1), drop=1),
        Column("THIRD", itemgetter(2), flexible=True),
    ]
    console = Console({"COLUMNS": str(width)})
    assert all(width_of(line) <= width for line in draw_table(console, columns, rows))


def test_a_column_without_content_is_left_out():
    columns = [Column(title, itemgetter(at)) for at, title in enumerate("ABC")]
    rows = [(1, "", "x"), (2, None, "")]
    assert list(draw_table(Console({}), columns, rows)) == ["A  C", "1  x", "2"]


def test_a_column_that_is_left_out_takes_no_room():
    columns = [
        Column("CODE", itemgetter(0)),
        Column("SEVERITY", itemgetter(1)),
        Column("EXAMPLE", itemgetter(2), flexible=True, drop=1),
    ]
    rows = [("remote-execution", "warning", "somewhere " * 9)]
    assert list(draw_table(Console({"COLUMNS": "30"}), columns, rows)) == [
        "CODE              SEVERITY",
        "remote-execution  warning",
    ]


def test_a_table_without_rows_is_nothing():
    assert list(draw_table(Console({}), [Column("A", str)], [])) == []


def test_a_column_escapes_and_counts_in_thousands_only_in_a_table():
    column = Column("A", lambda item: item)
    items = ["a\x1bb", 1234, None]
    assert list(column.cells(items, in_table=True)) == ["a\\x1bb", "1,234", ""]
    assert list(column.cells(items, in_table=False)) == ["a\\x1bb", "1234", ""]


def test_columns_may_be_for_the_table_or_the_pipe_or_for_some_items_only(capsys):
    columns = [
        Column("HANDLE", lambda item: f"x/{item}", only="plain"),
        Column("ITEM", str),
        Column("LENGTH", len, only="table"),
        Column("NEVER", str, only="table", when=lambda items: len(items) > 2),
    ]
    for style in ("table", None, "names"):
        session = Session(Console({}))
        session.style = style
        emit(session, ["a", "bc"], columns)
    assert capsys.readouterr().out == (
        "ITEM  LENGTH\na     1\nbc    2\nx/a\ta\nx/bc\tbc\nx/a\nx/bc\n"
    )


@pytest.mark.parametrize("kind", [Diagnostic, Source, Skill, SearchHit, SkillDetail])
def test_the_keys_of_a_record_are_fields(kind):
    known = {entry.name for entry in fields(kind)} | {"category"}  # which follows from the code
    assert set(kind.KEYS) <= known


def test_a_record_has_all_fields_in_order_unless_the_class_says_which():
    finding = Diagnostic("code", "info", "text", 3)
    assert list(record(finding)) == list(Diagnostic.KEYS)
    given = Parameter("city", "string", "Where", required=True)
    assert record({"as": "is"}) == {"as": "is"}
    assert record((given, finding))[0] == {
        "name": "city",
        "type": "string",
        "description": "Where",
        "required": True,
        "default": None,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\u2066x\u2069", "\\u2066x\\u2069"),
        ("\x9b2J\x7f", "\\x9b2J\\x7f"),
        ("\udcff", "\\udcff"),
        ("a\U000e0041b", "a\\U000e0041b"),
        ("👩\u200d💻 \u0645\u06cc\u200c\u062e\u0648", "👩\u200d💻 \u0645\u06cc\u200c\u062e\u0648"),
        ("🏴\U000e0067\U000e0062\U000e007f", "🏴\U000e0067\U000e0062\U000e007f"),
    ],
    ids=ascii,
)
def test_escapes_in_a_line(text, expected):
    assert escape.line(text) == expected


def test_escapes_in_a_text_leave_lines_and_tabs():
    assert escape.text("a\r\nb\tc\x1bd\re") == "a\nb\tc\\x1bd\\re"


@given(st.text(alphabet=st.characters()))
def test_an_escaped_line_is_one_line(text):
    for shown in (escape.line(text), escape.prose(text)):
        assert len(shown.splitlines()) <= 1
        shown.encode()


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (123_456, "123 kB"), (5 * 10**12, "5,000 GB")],
)
def test_sizes(number, expected):
    assert formatting.size(number) == expected


def test_counts_agree_with_their_nouns():
    assert formatting.count(1, "skill") == "1 skill"
    assert formatting.count(2981, "skill") == "2,981 skills"


def test_progress_draws_nothing_where_nobody_watches(capsys):
    now = [0.0]
    with SyncProgress(Console(), clock=lambda: now[0]) as bar:
        now[0] = PATIENCE * 2
        bar("importing", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_progress_is_patient_and_then_draws():
    console = Console()
    console.err_is_terminal = True
    now = [0.0]
    with SyncProgress(console, clock=lambda: now[0]) as bar:
        bar("scanning", 1, None)
        assert bar._bar is None
        now[0] = PATIENCE * 2
        bar("importing [red]x", 1, 2)
        assert bar._bar is not None
        (task,) = bar._bar.tasks
        assert (task.description, task.completed, task.total) == ("importing [red]x", 1, 2)


class Screen(StringIO):
    """A stream that tells when something was written to it."""

    def __init__(self):
        super().__init__()
        self.drawn = Event()

    def isatty(self):
        return True

    def write(self, text):
        self.drawn.set()
        return super().write(text)


def test_one_long_step_of_a_sync_is_shown_though_nothing_more_is_said_of_it(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    monkeypatch.setenv("TERM", "xterm")
    console = Console()
    console.err, console.err_is_terminal = Screen(), True
    with SyncProgress(console, clock=lambda: 0.0) as bar:
        bar("fetching", 0, None)
        assert console.err.drawn.wait(30)
    assert "fetching" in console.err.getvalue()


def test_what_takes_long_says_what_is_done_on_a_terminal(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    console = Console()
    console.err, console.err_is_terminal = Screen(), True
    with progress.waiting(console, "checking"):
        assert console.err.drawn.wait(30)
    assert "checking ..." in console.err.getvalue()


def test_what_is_over_soon_or_watched_by_nobody_says_nothing(monkeypatch):
    console = Console()
    console.err = Screen()
    for console.err_is_terminal, patience in ((True, float("inf")), (False, 0.0)):
        monkeypatch.setattr(progress, "PATIENCE", patience)
        with progress.waiting(console, "checking"):
            pass
    assert console.err.getvalue() == ""


def test_a_failure_while_something_is_done_comes_through(monkeypatch):
    console = Console()
    console.err, console.err_is_terminal = Screen(), True
    with pytest.raises(KeyboardInterrupt), progress.waiting(console, "checking"):
        raise KeyboardInterrupt
    assert not [one for one in threads() if "_watch" in one.name]


@pytest.mark.parametrize(
    ("stamp", "told"),
    [
        ("2026-03-31T12:29:30Z", "just now"),
        ("2026-03-31T12:30:30Z", "just now"),
        ("2026-03-31T12:29:00Z", "1 minute ago"),
        ("2026-03-31T10:30:00Z", "2 hours ago"),
        ("2026-03-30T12:30:00Z", "1 day ago"),
        ("2026-03-28T12:00:00Z", "3 days ago"),
        ("2026-01-10T12:00:00Z", "2 months ago"),
        ("2025-01-10T12:00:00Z", "14 months ago"),
        ("2020-03-31T12:30:00Z", "6 years ago"),
        ("2027-03-31T12:30:00Z", "2027-03-31T12:30:00Z"),
        ("never", "never"),
        ("9999-99-99T99:99:99Z", "9999-99-99T99:99:99Z"),
    ],
)
def test_how_long_ago(stamp, told):
    assert formatting.ago(stamp, 1_774_960_200.0) == told
