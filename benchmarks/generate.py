"""Make folders of skills that look like real ones: sizes, names, tags, supporting files."""

import random
from pathlib import Path

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


def write_skills(root: Path, count: int, seed: int = 1) -> None:
    """Write ``count`` skills below ``root``; the same numbers give the same files."""
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
