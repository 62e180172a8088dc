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
Tried with real skills, and not used:

| idea | result |
|---|---|
| Hyperscan, to find which patterns may match | 32 us a document, but 46 s to compile the patterns |
| RE2 for the same | 7 ms a document for the set of patterns; 37 us for its filter by literals, \
which leaves 12 of 71 behaviours; our words leave 7 and take 91 us |
| Aho-Corasick for the words as well | 77 us, as long as cutting the text into words |
| Look for pieces of patterns only near the words | 225 us instead of 270 us, but it misses places |
| FTS5 that merges only at the end, more memory, larger batches | no gain |
| Other ways to compute sketches | 102 us instead of 87 us |
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
        ("walk", lambda: itertools.islice(Walk(place, limits), MOST)),
        ("open, read and hash files", lambda: (hash_files(place, f, {}, limits) for f in found)),
        (
            "parse documents",
            lambda: (parse_document(data, folder_name=one.name) for one, data, _ in documents),
        ),
        (
            "rules of the format",
            lambda: (
                list(check_specification(said, folder_name=one.name, files=()))
                for one, _, said in documents
            ),
        ),
        (
            "look documents through for harm",
            lambda: (list(check_security(one, files=())) for one in known),
        ),
        (
            "look other files through for harm",
            lambda: (list(check_file(path, data, defending=False)) for path, data in files),
        ),
        (
            "find untidy spelling (a check only)",
            lambda: (list(untidy(data, said)) for _, data, said in documents if said.usable),
        ),
        ("compress other files", lambda: (pack("", data) for _, data in files)),
        (
            "make rows",
            lambda: (make_version(one, 1, 0, "2026-01-01T00:00:00Z", None) for one in readings),
        ),
        ("sketches for near copies", lambda: (sketch(one.description, one.body) for one in known)),
        ("cut texts without spaces into words", lambda: (segment(one.body) for one in unspaced)),
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
        "CPU time for one skill, each part measured separately. Storing (rows, full-text indexes,",
        "commits) and passing data between the two processes are not in the table.",
        "",
        "| part | measured |",
        "|---|---:|",
        *shown,
        "",
        *TRIED,
        "",
    ]
