"""The performance contracts of the toolsets, measured with a whole registry behind them."""

import itertools
import statistics
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import floors

from registry import SkillRegistry

MEGABYTE = 1 << 20

Row = tuple[str, float, str, str]
"""What, how much, the goal, the unit."""


def slow(work: Callable[[], object], runs: int = 40) -> tuple[float, float]:
    """Return the median and the slowest of many runs, the first one included."""
    times = [floors.timed(work) for _ in range(runs)]
    return statistics.median(times), max(times)


def rows(registry: SkillRegistry, root: Path) -> Iterator[Row]:
    """Measure; ``root`` is the source of the registry, to which one large document is added."""
    refs = [skill.ref for skill in registry.list(limit=200)]
    names = itertools.cycle(refs)
    numbers = itertools.count()
    wave = registry.toolset("wave")
    native = registry.toolset("native")

    def wave_call(name: str) -> None:
        wave.call("Skill", {"skill_name": name})

    def native_call(tool: str, **arguments: object) -> Callable[[], object]:
        return lambda: native.call(tool, arguments)

    for what, work, goal in [
        ("wave: initialisation", wave.skills.initialize, "< 500 ms"),  # type: ignore[attr-defined]
        ("wave: description with the live list", wave.tools, "< 50 ms"),
        ("wave: loading a skill", lambda: wave_call(next(names)), "< 100 ms"),
        ("wave: error with suggestions", lambda: wave_call(f"{refs[5]}x"), "< 10 ms"),
        ("native: list_skills, first page", native_call("list_skills"), ""),
        (
            "native: search_skills (new query)",
            lambda: native.call("search_skills", {"query": f"deploy a service q{next(numbers)}x"}),
            "",
        ),
        ("native: read_skill", lambda: native.call("read_skill", {"name": next(names)}), ""),
    ]:
        middle, worst = slow(work)
        yield f"{what}, median", middle, goal, "ms"
        yield f"{what}, slowest of 40 calls", worst, "", "ms"

    basic = registry.toolset("basic", source=registry.sources()[0].name)
    middle, _ = slow(lambda: basic.call("list_skills", {}))
    yield "basic: list_skills (all folders)", middle, "< 1 s for 100", "ms"
    large = root / "a-large-document"
    large.mkdir()
    (large / "SKILL.md").write_text("---\nname: a-large-document\ndescription: Large.\n---\n")
    with (large / "SKILL.md").open("a") as document:
        document.write("x" * (MEGABYTE - document.tell()))
    answer = basic.call("get_skill", {"skill_name": large.name})
    assert len(answer["documentation"]) == MEGABYTE
    middle, _ = slow(lambda: basic.call("get_skill", {"skill_name": large.name}))
    yield "basic: get_skill of 1 MiB", middle, "< 500 ms", "ms"

    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    held = registry.list(limit=1000)
    used = (tracemalloc.get_traced_memory()[0] - before) / MEGABYTE
    tracemalloc.stop()
    yield f"metadata of {len(held):,} skills in memory", used, "< 10 MiB", "MiB"
