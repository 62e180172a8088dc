"""Where the time of a first import and of a check goes: CPU time of each of their parts."""

import itertools
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from registry import Settings
from registry.db.versions import SEGMENTED, how_indexed, pack
from registry.disk.files import digest
from registry.disk.walk import Walk
from registry.document.autofix import untidy
from registry.document.minhash import sketch
from registry.document.parse import parse_document
from registry.document.rules import check_specification
from registry.document.security import check_file, check_security
from registry.sync.reading import hash_files, make_version, read_folder
from registry.text import segment

MOST = 5000
"""Skills that are looked at: what they take each is the same for more."""

TRIED = """\
These ideas were tested with real skills, but are not used:

| idea | result |
|---|---|
| Use Hyperscan to find which patterns can match. | \
32 us per SKILL.md, but 46 s to compile the patterns |
| Use RE2 for the same task. | 7 ms per SKILL.md for the set of patterns. Its \
filter by literals takes 37 us and leaves 12 of \
71 behaviours to check. Our filter by words takes 91 us and leaves 7. |
| Also use Aho-Corasick to search for the words of our filter. | \
77 us, as long as splitting the text into words |
| Match parts of patterns only near these words. | 225 us instead of 270 us, but it misses matches |
| Let FTS5 merge only at the end, use more memory, or use larger batches. | no gain |
| Compute sketches in other ways. | slower: 102 us instead of 87 us |
""".splitlines()
"""What would not bring an import nearer to its goal."""


def rows(root: Path) -> list[tuple[str, float]]:
    """Return each part of the work on the skills below ``root``, and its microseconds a skill."""
    limits, place = Settings().limits, str(root)
    found = [one for one in itertools.islice(Walk(place, limits), MOST) if one.is_skill]
    texts: dict[str, tuple[str, bytes]] = {}
    documents = []
    for one in found:
        data: dict[str, bytes] = {}
        hash_files(place, one, {}, limits, lambda path, _, read, to=data: to.update({path: read}))
        document = parse_document(data[one.document or ""], folder_name=one.name)
        documents.append((one, data[one.document or ""], document))
        texts.update((digest(d), (p, d)) for p, d in data.items() if p != one.document)
    known = [document for _, _, document in documents]
    files = list(texts.values())  # of those with the same content only one is looked through
    readings = [read_folder(place, one, limits, {}) for one in found]
    unspaced = [one for one in known if how_indexed("ok", [one.text]) == SEGMENTED]
    parts: list[tuple[str, Callable[[], Iterable[object]]]] = [
        ("list the folders", lambda: itertools.islice(Walk(place, limits), MOST)),
        ("open, read and hash files", lambda: (hash_files(place, f, {}, limits) for f in found)),
        (
            "parse SKILL.md files",
            lambda: (parse_document(data, folder_name=one.name) for one, data, _ in documents),
        ),
        (
            "check the rules of the format",
            lambda: (
                list(check_specification(said, folder_name=one.name, files=()))
                for one, _, said in documents
            ),
        ),
        (
            "check SKILL.md files for dangerous behaviour",
            lambda: (list(check_security(one, files=())) for one in known),
        ),
        (
            "check other files for dangerous behaviour",
            lambda: (list(check_file(path, data, defending=False)) for path, data in files),
        ),
        (
            "find untidy spelling (only in `check`)",
            lambda: (list(untidy(data, said)) for _, data, said in documents if said.usable),
        ),
        ("compress other files", lambda: (pack("", data) for _, data in files)),
        (
            "make the rows for the database",
            lambda: (make_version(one, 1, 0, "2026-01-01T00:00:00Z", None) for one in readings),
        ),
        (
            "compute sketches to find near-duplicates",
            lambda: (sketch(one.description, one.body) for one in known),
        ),
        ("split texts without spaces into words", lambda: (segment(one.body) for one in unspaced)),
    ]
    for _, work in parts:
        consume(work())  # patterns are compiled when they are first tried
    return [(what, worked(work) / len(found) * 1e6) for what, work in parts]


def worked(work: Callable[[], Iterable[object]]) -> float:
    """Return the seconds of CPU time that going through it takes."""
    started = time.process_time()
    consume(work())
    return time.process_time() - started


def consume(results: Iterable[object]) -> None:
    """Go through it."""
    for _ in results:
        pass


def told(profile: Iterable[tuple[str, float]]) -> list[str]:
    """Say where the time of an import goes, to name what stands between it and its goal."""
    shown = [f"| {what} | {figure:,.0f} us |" for what, figure in profile]
    if not shown:
        return []
    return [
        "## Where the time of a first import and of a check goes",
        "",
        "The table shows the CPU time per skill. Each part is measured separately. The table does",
        "not include storing (rows, full-text indexes, commits) and passing data between the",
        "processes.",
        "",
        "| part | measured |",
        "|---|---:|",
        *shown,
        "",
        *TRIED,
        "",
    ]
