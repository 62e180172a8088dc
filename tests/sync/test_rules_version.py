"""What is made of a skill's text is stored: who changes it raises the version of the rules."""

import hashlib
import os

from registry.db.read.listing import Filters
from registry.sync.reading import RULES_VERSION
from tests.conftest import OLD, write_skill
from tests.document.attacks import (
    DEFENSIVE,
    DISGUISED,
    GATHERED,
    HARMLESS,
    HELD_OUT,
    MARK,
    QUOTED,
    SAMPLES,
    TRIED,
    UNSEEN,
)
from tests.document.attacks.evasions import EVASIONS

FOUND = ("21", "a22e19a4d4a1b6a8")
"""The version of the rules, and a digest of what they find in the texts below."""

FRONTS = (
    "name: Green_Tea\nDescription: Makes tea.\n",
    "name: claude-tea\ndescription: |\n  Two\n  lines.\ntags: [a, B, a]\n",
    "description: No name.\nkind: workflow\nmetadata:\n  tags: one, two\n  version: '2'\n",
    "name: tea\ndescription: Use when this capability is needed.\n",
    "name: tea\ndescription: x\nallowed-tools: Bash(*)\nhooks: {stop: run}\n",
    "name: tea\ndescription: x\nmetadata: {created_at: 2024-05-01, kind: reference}\nkeys: 1\n",
    "- a list\n",
    "name: [1]\ndescription: {a: 1}\ncompatibility: 3\n",
    "name: \u8336\ndescription: '\u202e\u200b hidden'\nlicense: []\n",
)

BODY = "# Tea\n\nSee [this](references/gone.md) and `scripts/gone.py`.\n"


def write(folder, text):
    """Write a skill that says a text, or has it as a file, where its first line names one."""
    first, _, rest = text.partition("\n")
    if first.startswith(MARK):
        path = write_skill(folder) / first.removeprefix(MARK)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rest, encoding="utf-8")
        os.utime(path, (OLD, OLD))
    elif first == "---":
        write_skill(folder)
        (folder / "SKILL.md").write_text(text, encoding="utf-8")
        os.utime(folder / "SKILL.md", (OLD, OLD))
    else:
        write_skill(folder, body=text)


def test_what_the_rules_find_differs_only_where_their_version_does(registry, root):
    themes = (SAMPLES, UNSEEN, TRIED, HELD_OUT)
    texts = [text for theme in themes for some in theme.values() for text in some]
    texts += [text for how in EVASIONS if how != "padding" for text in EVASIONS[how].values()]
    texts += GATHERED
    for number, text in enumerate((*texts, *HARMLESS, *DISGUISED)):
        write(root / f"text-{number}", text)
    for number, (name, description, text) in enumerate((*QUOTED, *DEFENSIVE)):
        write_skill(root / f"quoted-{number}", name=name, description=description, body=text)
    for number, front in enumerate(FRONTS):
        write(root / f"front-{number}", f"---\n{front}---\n{BODY}")
    registry.sync(str(root), name="mine")
    skills = [
        (one.ref, one.name, one.description, one.kind, one.tags, one.status, one.created_at)
        for one in registry.list(Filters(all=True))
    ]
    checked = {
        os.path.basename(one.path): [
            (found.code, found.severity, found.message.replace(str(root), ""), found.line)
            for found in one.findings
        ]
        for one in registry.check()
    }
    assert len(skills) == len(checked) > 300
    digest = hashlib.sha256(repr((skills, sorted(checked.items()))).encode()).hexdigest()[:16]
    assert (RULES_VERSION, digest) == FOUND, (
        "Other findings, or other samples: if what the rules say of any text differs from before, "
        "raise RULES_VERSION in registry/sync/reading.py. Then write down what is here now."
    )
