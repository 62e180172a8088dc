"""Ask the questions of this folder as people type them, and report three numbers for each class.

usage: run.py DATABASE [a|b|c]

DATABASE is synced with about 100,000 skills of six public collections, each a folder that is named
<owner>__<repository>. The questions were written for skills that were chosen at random, without
words of their descriptions. Half a may be tuned on; half b decides. Part c is about skills that
are also in the catalogue of 10,049 skills; nothing was tuned on it. A judgment is 2 if the skill
does what the need of the question asks, 1 if it is related, else 0. What isn't listed was not
judged, and counts as 0: judge it before you believe a difference.
"""

import json
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

from registry import SkillRegistry
from registry.catalog.search.rank import FITS

HERE = Path(__file__).resolve().parent
FIRST = 5


def main() -> None:
    place, *halves = sys.argv[1:]
    grades: dict[str, dict[str, str]] = defaultdict(dict)
    for line in (HERE / "judgments.tsv").read_text("utf-8").splitlines():
        question, grade, folder = line.split("\t")
        grades[question][folder] = grade
    found: dict[str, list[bool]] = defaultdict(list)
    wrongly, rightly, unjudged, times = [], [], [], []
    with SkillRegistry.open(place) as registry:
        for line in (HERE / "questions.jsonl").read_text("utf-8").splitlines():
            one = json.loads(line)
            if halves and one["half"] not in halves:
                continue
            start = time.perf_counter()
            hits = registry.search([one["text"]], limit=FIRST)
            times.append((time.perf_counter() - start) * 1e3)
            warned = hits.confidence < FITS
            if one["class"] == "none":
                rightly.append(warned)
                continue
            known = grades[one["id"]]
            unjudged += [one["id"] for hit in hits if hit.folder not in known]
            is_found = any(known.get(hit.folder) == "2" for hit in hits)
            found[one["class"]].append(is_found)
            if is_found:
                wrongly.append(warned)
    for name, some in found.items():
        print(f"{name:10} {sum(some)} of {len(some)}")
    every = [one for some in found.values() for one in some]
    print(f"{'all':10} {sum(every)} of {len(every)}")
    print(f"no close match, wrongly: {sum(wrongly)} of {len(wrongly)} answered questions")
    print(f"no close match, rightly: {sum(rightly)} of {len(rightly)} questions without an answer")
    last = statistics.quantiles(times, n=20)[-1]
    print(f"{statistics.median(times):.1f} ms, 95 % below {last:.1f} ms")
    print(f"results without a judgment: {len(unjudged)}")


if __name__ == "__main__":
    main()
