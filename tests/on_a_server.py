"""Which tests are asked of a server as well as of a file."""

from pathlib import Path

import pytest

ON_A_SERVER = {
    "catalog": "queries and full-text search are SQL of each dialect",
    "changes": "a change commits over a connection, under locks of the server",
    "publish": "versions are rows of the server, under its rights",
    "server": "what only a server does",
    "sync": "versions are staged and published in the database, one writer at a time",
    "test_check.py": "findings are read from the database, and what refers to what",
    "test_corpus.py": "real texts of every kind are stored, indexed and found again",
    "test_database.py": "transactions, threads, what is told of the database",
    "test_forks.py": "a child must not speak on the connections of its parent",
    "test_history.py": "revisions and contents are written, shared and pruned",
    "test_hostile.py": "texts that a database may not hold as they are",
    "test_usage.py": "counts of many writers are added up by the database",
    "test_views.py": "views are SQL that each database runs its own way",
    "test_visibility.py": "what a personality sees is a query",
    "test_why.py": "explanations are queries",
    "web": "what is counted, narrowed and told of all skills are queries",
}
"""What is asked of a server as well as of a file (files and folders here), and why.

All else is about what lies above the database: rendering, the wording of commands, the contracts
of toolsets, files. It would say the same twice; of each file the tests marked ``both`` are enough
to see that its way to a server is not broken.
"""
ALIKE = {
    "catalog/test_evals.py": "which prompts skills ship, and what becomes of the answers",
    "changes/test_changes.py": "what a change leaves on the disk",
    "catalog/test_similar.py": "which names look alike",
    "changes/test_copied.py": "which copies are changed together, and what a hand's edit does to that",
    "changes/test_durable.py": "what is on the disk, and when",
    "changes/test_fixes.py": "the text of documents",
    "changes/test_ours.py": "what a signed record says against a row of the journal",
    "changes/test_recovery.py": "what lies where a process died",
    "changes/test_refusals.py": "what is refused before anything is written",
    "changes/test_state.py": "folders of state, and the trash",
    "changes/test_unanswering_disk.py": "what a disk fails to say",
    "changes/test_undo.py": "which change is the last, and whether what it left is still so",
    "sync/test_links.py": "where links lead",
    "sync/test_sources.py": "which folders may be sources",
    "sync/test_supporting_files.py": "what lies beside a document",
    "sync/test_sync.py": "what differs between a folder and what was stored of it",
    "sync/test_what_is_read.py": "which files a sync opens",
    "sync/test_report.py": "what is counted of a plan",
    "web/test_attacks.py": "what a browser makes of hostile skills",
    "web/test_browser.py": "what a browser makes of a page",
    "web/test_clawhub.py": "the words of another registry's clients",
    "web/test_command.py": "how the program begins and ends",
    "web/test_auth.py": "who is let in",
    "web/test_hostile.py": "how a page says what it was given",
    "web/test_looks.py": "what a browser shows of a page",
    "web/test_matrix.py": "which face a token opens",
    "web/test_pages.py": "what pages have in common",
    "web/test_skill.py": "what a page says of one skill",
}
"""Files in those folders that ask a server nothing which others do not, and what they are about.

Of these, too, the tests marked ``both`` are asked: enough of them for each statement of the file.
"""


def may_be_for_a_server(path: Path) -> bool:
    """Tell whether a file may have tests for a server, by a look at its text."""
    if path.suffix != ".py" or is_asked_whole(path):
        return True
    text = path.read_text(encoding="utf-8")
    return "mark.both" in text or "mark.server" in text


def is_asked_whole(path: Path) -> bool:
    """Tell whether a file of tests is asked of a server without further marks."""
    place = path.relative_to(Path(__file__).resolve().parent)
    return place.parts[0] in ON_A_SERVER and str(place) not in ALIKE


def is_for_a_server(item: pytest.Item) -> bool:
    """Tell whether a test says something about a server."""
    if item.get_closest_marker("server") is not None:
        return True
    needed = {"database", "lent_database", "new_database", "server_database", "databases"}
    if item.get_closest_marker("file") is not None or not needed & set(
        getattr(item, "fixturenames", ())
    ):
        return False
    return item.get_closest_marker("both") is not None or is_asked_whole(item.path)
