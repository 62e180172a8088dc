"""What the machines were told, held against what they saw and what is there in the end.

A skill is changed by one machine alone, one change after the other. So what may be in it is known:
after a change that succeeded what that made, after one that was refused what was there before, and
after one without an answer either, until somebody has looked.
"""

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from registry import Settings, SkillRegistry
from registry.errors import RegistryError
from tests.server.chaos.skills import BOTH, MARK, SOURCES, State, document_mark, state_of

FILES: Final = ("SKILL.md", "data.txt")
STATES: Final = ".*.skill-registry"

CHANGES: Final = ("create", "update", "edit", "delete", "restore")
LOOKS: Final = ("up", "look", "last")

REVISIONS: Final = """
SELECT r.uid, r.number, r.name, r.content_hash, c.packed, c.data FROM revisions r
LEFT JOIN contents c ON c.hash = r.content_hash ORDER BY r.uid, r.number
"""


@dataclass
class Operation:
    """One operation of a machine: when it began, and what it was answered, if it was."""

    facts: dict[str, Any]
    answer: dict[str, Any] = field(default_factory=dict)
    written: bool = False

    @property
    def what(self) -> str:
        return str(self.facts["op"])

    @property
    def to(self) -> State:
        return as_state(self.facts["to"])

    @property
    def done(self) -> bool:
        return "done" in self.answer

    @property
    def refused(self) -> bool:
        return "refused" in self.answer

    @property
    def until(self) -> float:
        return float(self.answer["at"]) if self.answer else float("inf")


@dataclass
class Findings:
    """What is wrong: changes that were lost, what nobody asked for, and anything else."""

    lost: list[str] = field(default_factory=list)
    phantom: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        words = [*self.lost, *self.phantom, *self.other]
        return "\n".join([f"{len(self.lost)} lost, {len(self.phantom)} phantom", *words])

    def __bool__(self) -> bool:
        return bool(self.lost or self.phantom or self.other)


def as_state(given: Any) -> State:
    return None if given is None else (given[0], given[1])


def operations(journal: Path) -> list[Operation]:
    """Return what a machine did, in its order."""
    found: list[Operation] = []
    for line in journal.read_text().splitlines():
        facts = json.loads(line)
        if "op" in facts:
            found.append(Operation(facts))
        elif facts.get("written"):
            found[-1].written = True
        else:
            assert facts["n"] == found[-1].facts["n"]
            found[-1].answer = facts
    return found


class History:
    """All that was done, by machine."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self.folders = folders
        self.by_host = {host: operations(place / "journal") for host, place in folders.items()}
        self.findings = Findings()
        self.counts = Counter(
            (one.what, next(iter({"done", "refused", "failed", "broke"} & one.answer.keys()), "no"))
            for one in self.all()
        )
        self.final: dict[str, State] = {}
        self.hashes: dict[str, str] = {}
        self.asked: dict[str, set[State]] = {}
        self.deleted: set[State] = set()
        for one in self.all():
            if one.what in CHANGES:
                self.asked.setdefault(one.facts["skill"], {None}).add(one.to)
            if "broke" in one.answer:
                self.findings.other.append(f"{one.what}: {one.answer['broke']}")
            elif one.answer.get("failed") == "SyncRunning":  # but each machine is one process
                self.findings.other.append(f"{one.what} was held up: {one.answer['why']}")

    def all(self) -> Iterator[Operation]:
        for done in self.by_host.values():
            yield from done

    def check(self) -> Findings:
        """Hold what each machine saw against what may have been."""
        for host in self.by_host:
            self._check_disk(host)
        for reader in self.all():
            if reader.done and reader.what in {"read", "list", "search", "pull"}:
                self._check_reading(reader)
        return self.findings

    # What its own machine sees

    def _check_disk(self, host: str) -> None:
        may: dict[str, set[State]] = {}
        for one in self.by_host[host]:
            if one.what in CHANGES:
                skill = one.facts["skill"]
                before = may.setdefault(skill, {None})
                if one.done or one.written:
                    may[skill] = {one.to}
                elif not one.refused:
                    may[skill] = before | {one.to}
                if one.done and one.to is not None:
                    self._same_bytes(one)
                self._note_trash(one, before)
            elif one.what in LOOKS and one.done:
                self._compare(one, may)
        self.final |= {skill: states.copy().pop() for skill, states in may.items()}

    def _note_trash(self, one: Operation, before: set[State]) -> None:
        """Note what is to be found in the trash: what was deleted, and was not restored."""
        if one.what == "restore":  # or it may have been
            self.deleted.discard(one.to)
        elif one.what == "delete" and one.done and len(before) == 1:
            self.deleted |= before

    def _same_bytes(self, one: Operation) -> None:
        found = one.answer["done"]["hash"]
        assert one.to is not None
        if self.hashes.setdefault(one.to[0], found) != found:
            self.findings.other.append(f"{one.to[0]} has other bytes after {one.what}")

    def _compare(self, look: Operation, may: dict[str, set[State]]) -> None:
        seen = look.answer["done"]
        if seen["differs"]:
            self._say(look, f"the database does not equal the disk: {seen['differs']}")
        for skill, given in seen["disk"].items():
            state = as_state(given)
            if state not in may.get(skill, {None}):
                kind = self.findings.lost if state in self._before(look, skill) else None
                kind = self.findings.phantom if kind is None else kind
                kind.append(f"{look.facts}: {skill} is {state}, and may be {may.get(skill)}")
            may[skill] = {state}
            if seen["listed"].get(skill) != (state and state[0]):
                self._say(look, f"{skill} is {state}, and listed as {seen['listed'].get(skill)}")
            known = self.hashes.get(state[0]) if state else None
            if known is not None and seen["hashes"][skill] != known:
                self._say(look, f"{skill} has other bytes than when it was {state}")

    def _before(self, look: Operation, skill: str) -> set[State]:
        """Return what a skill was asked to be before somebody looked, in vain or not."""
        began = look.facts["at"]
        made = [one for one in self.all() if one.facts.get("skill") == skill and "to" in one.facts]
        return {None} | {one.to for one in made if one.facts["at"] < began and not one.refused}

    def _say(self, look: Operation, what: str) -> None:
        self.findings.other.append(f"{look.facts['op']} at {look.facts['at']:.3f}: {what}")

    # What the others see

    def _check_reading(self, one: Operation) -> None:
        seen: Any = one.answer["done"]
        if one.what == "pull":
            seen = None if seen is None else self._pulled(one, seen)
        if one.what in {"read", "pull"}:
            seen = {one.facts["skill"]: seen}
        elif one.what == "list":
            seen = dict.fromkeys(self.asked) | seen
        for skill, mark in seen.items():
            may = self._readable(skill, one.facts["at"], one.until)
            if mark not in may:
                asked = {state and state[0] for state in self.asked.get(skill, {None})}
                kind = self.findings.lost if mark in asked else self.findings.phantom
                kind.append(f"{one.facts} saw {skill} as {mark}, which may be {may}")

    def _pulled(self, one: Operation, seen: dict[str, Any]) -> str | None:
        state = as_state(seen["holds"])
        if state not in self.asked[one.facts["skill"]] or seen["state"] == "edited":
            self.findings.other.append(f"{one.facts} pulled {seen}")
        return state and state[0]

    def _readable(self, skill: str, since: float, until: float) -> set[str | None]:
        """Return the marks that the database may show of a skill at some moment of a time."""
        may: set[str | None] = {None}
        for one in self.by_host[skill.partition("-")[0]]:
            if one.facts["at"] > until:
                break
            if one.what in CHANGES and one.facts["skill"] == skill and not one.refused:
                mark = one.to and one.to[0]
                # That a file was edited does not tell when the database knows of it.
                may = {mark} if one.done and one.until < since else may | {mark}
            elif one.what in LOOKS and one.done and one.until < since:
                state = as_state(one.answer["done"]["disk"][skill])
                may = {state and state[0]}
        return may

    # What is there in the end

    def check_stored(self, url: str, rows: Any) -> None:
        """Ask the database as a machine that has none of the folders; ``rows``: what asks in SQL."""
        with SkillRegistry.open(url, settings=Settings(host="auditor")) as registry:
            self.findings.other += registry.check_database()
            stored = {one.name for one in registry.list()}
            for skill, state in self.final.items():
                if state is not None:
                    try:
                        self._check_skill(registry, skill, state)
                    except RegistryError as error:
                        self.findings.lost.append(f"{skill}: {error}")
            there = {skill for skill, state in self.final.items() if state is not None}
            self.findings.lost += [f"{skill} is not stored" for skill in there - stored]
            self.findings.phantom += [f"{skill} is stored" for skill in stored - there]
        self._check_revisions(rows(REVISIONS))
        for table in ("journal", "leases"):
            left = rows(f"SELECT * FROM {table}")
            self.findings.other += [f"{table} holds {row}" for row in left]

    def _check_skill(self, registry: SkillRegistry, skill: str, state: State) -> None:
        host, source, _ = skill.split("-")
        place = self.folders[host] / (SOURCES[0] if source == BOTH else source) / skill
        for name in FILES:
            if registry.read_file(skill, name) != (place / name).read_bytes():
                self.findings.other.append(f"{name} of {skill} is stored with other bytes")
        for one in registry.history(skill):
            texts = [registry.read_revision(skill, one.number, name).decode() for name in FILES]
            found = tuple(document_mark(text) for text in texts)
            if found not in self.asked[skill]:
                self.findings.phantom.append(f"{skill} has a revision {found}")
        assert state is not None
        latest = registry.read_revision(skill, registry.history(skill)[0].number).decode()
        if document_mark(latest) != state[0]:
            self.findings.other.append(f"the latest revision of {skill} is not {state[0]}")

    def _check_revisions(self, rows: Sequence[tuple[Any, ...]]) -> None:
        numbers: dict[str, list[int]] = {}
        kept: set[str] = set()
        for uid, number, name, content_hash, packed, data in rows:
            numbers.setdefault(uid, []).append(number)
            kept.add(content_hash)
            if data is not None:
                text = (zlib.decompress(data) if packed else bytes(data)).decode()
                marks = {state[0] for state in self.asked[name] if state}
                if document_mark(text) not in marks:
                    self.findings.phantom.append(f"{name} has a revision {MARK.findall(text)}")
                if content_hash != f"sha256:{hashlib.sha256(text.encode()).hexdigest()}":
                    self.findings.other.append(f"a content of {name} is not its hash's")
        for uid, found in numbers.items():
            if found != [*range(1, len(found) + 1)]:
                self.findings.other.append(f"{uid} has the revisions {found}")
        for mark, content_hash in self.hashes.items():
            if content_hash not in kept:
                self.findings.lost.append(f"there is no revision of {mark}")

    def check_left(self) -> None:
        """Look for what changes left in the state folders, and for what the trash must hold."""
        asked = set().union(*self.asked.values())
        states = [state for place in self.folders.values() for state in place.glob(STATES)]
        for state in states:
            left = [one for area in ("ops", "conflict") for one in (state / area).iterdir()]
            self.findings.other += [f"{one} is left" for one in left]
        trash = {state_of(tree) for state in states for tree in state.glob("trash/*/tree")}
        self.findings.phantom += [f"the trash holds {one}" for one in trash - asked]
        self.findings.lost += [f"the trash lacks {one}" for one in self.deleted - trash]
