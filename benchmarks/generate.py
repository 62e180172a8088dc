"""Make folders of skills: real ones varied, or where there are none, some that look like them."""

import posixpath
import random
import re
import tarfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import floors
import yaml

CORPUS = Path(__file__).resolve().parents[2] / "shared/corpus/real-skills-sample.tar.gz"
FEW_FILES, FEW_BYTES = 8, 100_000
"""Supporting files of a skill, and bytes of one, that are taken over."""

FRONT = re.compile(r"---\n(?:.*\n)*?name: (?P<name>[a-z0-9-]+)\n(?:.*\n)*?---\n")
DESCRIPTION = re.compile(r"^description: (?P<quote>[\"']?)(?P<first>\w+) ", re.MULTILINE)

KINDS = ["workflow", "reference", "companion", None]
STARTS = "b c d f g h l m n p r s t v st tr pl br".split()
VOWELS = "a e i o u ea ou".split()
ENDS = ["", "n", "r", "s", "t", "nd"]
TOPICS = (
    "pdf excel review deploy test docker sql csv release notes security api chart email".split()
)


def vocabulary(rng: random.Random, size: int = 4000) -> list[str]:
    """Return words that can be spoken, so that they look like prose to whoever scans them."""
    words = {
        "".join(rng.choice(STARTS) + rng.choice(VOWELS) for _ in range(rng.randint(1, 4)))
        + rng.choice(ENDS)
        for _ in range(size)
    }
    return sorted(words)


def paragraph(rng: random.Random, words: list[str], length: int) -> str:
    # Squaring the random number makes some words frequent and most of them rare.
    picked = [words[int(rng.random() ** 2 * len(words))] for _ in range(length)]
    return " ".join(picked).capitalize() + "."


class Real(NamedTuple):
    """A skill of the corpus: its document and its other files, by their paths."""

    name: str
    text: str
    files: Mapping[str, bytes]

    def varied(self, number: int) -> tuple[str, str]:
        """Return another name, and the document with that, another word and another line."""
        name = f"{self.name[:50]}-{number}"
        text = self.text.replace(f"name: {self.name}\n", f"name: {name}\n", 1)
        text = DESCRIPTION.sub(rf"description: \g<quote>\g<first> v{number} ", text, count=1)
        return name, f"{text.rstrip()}\n\nThis is number {number}.\n"


@cache
def real_skills() -> Sequence[Real]:
    """Return the skills of the corpus that any YAML parser reads and that can be varied."""
    if not CORPUS.is_file():
        return ()
    files: dict[str, bytes] = {}
    with tarfile.open(CORPUS) as archive:
        for member in archive:
            if member.isfile() and member.size <= FEW_BYTES:
                files[member.name] = archive.extractfile(member).read()
    below: dict[str, dict[str, bytes]] = {
        posixpath.dirname(path): {} for path in files if path.endswith("/SKILL.md")
    }
    for path, data in files.items():
        above = posixpath.dirname(path)
        while above and above not in below:
            above = posixpath.dirname(above)
        if above and len(below[above]) < FEW_FILES and not path.endswith("/SKILL.md"):
            below[above][path[len(above) + 1 :]] = data
    found = []
    for folder, others in sorted(below.items()):
        text = files[f"{folder}/SKILL.md"].decode("utf-8", "replace").replace("\r\n", "\n")
        front = FRONT.match(text)
        if front and DESCRIPTION.search(front[0]):
            one = Real(front["name"], text, others)
            if is_plain(one.varied(1)[1]):
                found.append(one)
    return found


def is_plain(text: str) -> bool:
    """Tell whether the front matter is YAML with a name and a description."""
    try:
        said = yaml.load(text.split("---", 2)[1], floors.LOADER)
    except yaml.YAMLError:
        return False
    return isinstance(said, dict) and all(
        isinstance(said.get(key), str) for key in ("name", "description")
    )


def write_skills(root: Path, count: int, seed: int = 1) -> None:
    """Write ``count`` skills below ``root``; the same numbers give the same files."""
    real = real_skills()
    if not real:
        write_made_up(root, count, seed)
        return
    for number in range(count):
        one = real[number % len(real)]
        name, text = one.varied(number)
        folder = root / f"category-{number % 40}" / name
        for path, data in {"SKILL.md": text.encode(), **one.files}.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


def write_made_up(root: Path, count: int, seed: int) -> None:
    """Write skills of words that nobody knows, where there is no corpus."""
    rng = random.Random(seed)
    words = vocabulary(rng)
    for number in range(count):
        topic = rng.choice(TOPICS)
        name = f"{topic}-{rng.choice(words)}-{number}"
        folder = root / f"category-{number % 40}" / name
        folder.mkdir(parents=True)
        lines = ["---", f"name: {name}", f"description: {paragraph(rng, words, 28)}"]
        lines += [
            "metadata:",
            f'  version: "1.{number % 20}"',
            f"  tags: {topic}, {rng.choice(TOPICS)}",
        ]
        if kind := rng.choice(KINDS):
            lines.append(f"  kind: {kind}")
        lines += ["---", "", f"# {name}", ""]
        # Real files: median 6.2 KB, p99 34 KB.
        size = min(int(rng.lognormvariate(8.73, 0.75)), 200_000)
        while size > 0:
            text = paragraph(rng, words, rng.randint(20, 80))
            if rng.random() < 0.2:
                text += f" Mind the {topic}, and now and then the {rng.choice(TOPICS)}."
            lines += [f"## {rng.choice(words)}", "", text, ""]
            size -= len(text)
        (folder / "SKILL.md").write_text("\n".join(lines), encoding="utf-8")
        if number % 5 == 0:
            (folder / "references").mkdir()
            for extra in range(rng.randint(1, 4)):
                text = paragraph(rng, words, 200)
                (folder / "references" / f"part-{extra}.md").write_text(text, encoding="utf-8")
