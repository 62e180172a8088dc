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
Tried, and not taken, with real skills:

- Hyperscan, asked which of the patterns may match: 32 us a document, and 46 s to compile them.
- RE2, asked the same: a set of the patterns with their bounds taken off takes 7 ms a document, for
  its automaton grows too large; its filter by literals 37 us, and leaves 12 behaviours of 71 to be
  looked for, where the words that each one needs leave 7 and take 91 us. Most of the time goes into
  finding the places of those words, which either needs as well.
- Aho-Corasick (`ahocorasick_rs`), asked for the places of all pieces of text near which behaviours
  are looked for: 40 us a document as a DFA instead of 120 us, for one more compiled dependency.
  Asked for the words as well it takes as long as cutting the text into them, 77 us.
- Looking for these pieces only in the parts of a text that have their words: 225 us instead of 270,
  and in one document of nine other places, where a piece is the beginning of a longer word.
- FTS5 that merges nothing until the end, and then all at once: as long as merging now and then.
  More memory for it, or larger batches: no less time than 4 MiB and 400 skills. SQLite that doesn't
  overwrite what it frees: no less time once little is merged.
- Other ways to the lowest hash of each bucket, for sketches: 102 us instead of 87.
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
            "what could be tidier (a check only)",
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
        "CPU time a skill, each part by itself; what is missing in the sum is storing (rows, the",
        "full-text indexes, commits) and handing over what another process has read.",
        "",
        "| part | measured |",
        "|---|---:|",
        *shown,
        "",
        *TRIED,
        "",
    ]
