"""The bare parts: what the same work costs without a registry around it."""

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that one call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def walk(root: str) -> int:
    """Scan and stat every file once."""
    total = 0
    stack = [root]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    return total


class Spent(NamedTuple):
    """What a piece of work took: the time that passed, and CPU time of this process."""

    seconds: float
    worked: float


def spent(work: Callable[[], object]) -> Spent:
    """Return what one call takes."""
    worked = time.process_time()
    seconds = timed(work)
    return Spent(seconds, time.process_time() - worked)


def import_parts(root: Path, database: Path) -> dict[str, Spent]:
    """Read, hash, parse with libyaml, and insert with FTS5: each timed by itself."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    parts: dict[str, Spent] = {}
    contents: list[bytes] = []
    parts["read"] = spent(lambda: contents.extend(path.read_bytes() for path in paths))
    parts["sha256"] = spent(lambda: [hashlib.sha256(data).hexdigest() for data in contents])
    texts = [
        data.decode() for path, data in zip(paths, contents, strict=True) if path.name == "SKILL.md"
    ]
    fronts = [text.split("---", 2)[1] for text in texts]
    parsed: list[dict[str, object]] = []
    parts["libyaml"] = spent(lambda: parsed.extend(yaml.load(f, LOADER) for f in fronts))

    def insert() -> None:
        connection = sqlite3.connect(database)
        connection.executescript(
            "PRAGMA journal_mode = WAL;"
            "CREATE TABLE skills (id INTEGER PRIMARY KEY, name, description, text);"
            "CREATE VIRTUAL TABLE search USING fts5(name, description, body, content='');"
        )
        rows = [
            (n, p["name"], p["description"], t)
            for n, (p, t) in enumerate(zip(parsed, texts, strict=True))
        ]
        connection.executemany("INSERT INTO skills VALUES (?, ?, ?, ?)", rows)
        connection.executemany(
            "INSERT INTO search (rowid, name, description, body) VALUES (?, ?, ?, ?)", rows
        )
        connection.commit()
        connection.close()

    parts["insert"] = spent(insert)
    return parts
