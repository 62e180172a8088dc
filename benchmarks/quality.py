"""Does search find the right skill? Questions with judgments, about real skills.

The questions and judgments are in ../shared/findability, the skills that may be carried in
../shared/corpus; where they are missing nothing is measured. A question counts where at least one
of its right skills is there, and is answered where one of them is among the first five.
"""

import json
import tarfile
from collections import defaultdict
from pathlib import Path

from registry import Settings, SkillRegistry

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"
QUESTIONS = SHARED / "findability"
CORPUS = SHARED / "corpus" / "real-skills-sample.tar.gz"
RIGHT = "2"
FIRST = 5


def unpack(folder: Path) -> bool:
    """Lay the real skills out as folders; False: there are none."""
    if not CORPUS.exists():
        return False
    with tarfile.open(CORPUS) as archive:
        archive.extractall(folder, filter="data")
    return True


def answered(registry: SkillRegistry) -> dict[str, tuple[int, int]]:
    """Return by the class of question how many were answered, and how many could have been."""
    lines = (QUESTIONS / "manifest.tsv").read_text("utf-8").splitlines()
    ids = {digest: skill for digest, _, skill in (line.split("\t") for line in lines)}
    right = defaultdict(set)
    for line in (QUESTIONS / "qrels.tsv").read_text("utf-8").splitlines():
        question, grade, skill = line.split("\t")
        if grade == RIGHT:
            right[question].add(skill)
    there = {ids.get((one.content_hash or "").removeprefix("sha256:")) for one in registry.iter()}
    found: dict[str, tuple[int, int]] = {}
    for line in (QUESTIONS / "questions.jsonl").read_text("utf-8").splitlines():
        question = json.loads(line)
        wanted = right[question["id"]] & there
        if not wanted:
            continue
        hits = registry.search(question["text"], limit=FIRST)
        names = {ids.get((hit.content_hash or "").removeprefix("sha256:")) for hit in hits}
        good, asked = found.get(question["class"], (0, 0))
        found[question["class"]] = good + bool(wanted & names), asked + 1
    return found


def measure(folder: Path) -> list[tuple[str, ...]]:
    """Return the rows of the table: class, answered of asked, share."""
    if not QUESTIONS.exists() or not unpack(folder / "skills"):
        return []
    with SkillRegistry.open(folder / "quality.db", settings=Settings()) as registry:
        registry.sync(folder / "skills")
        found = answered(registry)
    found["all"] = tuple(map(sum, zip(*found.values(), strict=True)))  # type: ignore[assignment]
    return [
        (name, f"{good} of {asked}", f"{100 * good / asked:.0f} %")
        for name, (good, asked) in found.items()
    ]


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        for row in measure(Path(scratch)):
            print(*row, sep="\t")
