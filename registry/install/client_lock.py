"""The lock of the ``skills`` command line (npm), kept in step where a project or a home has one.

Its format is that program's (version 1 in a project, 3 for all projects), to the byte; what we
don't know in it stays. A lock that we can't read is left as it is.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Self
from urllib.parse import urlsplit

from registry.core import Core
from registry.disk.atomic import Place, open_named
from registry.disk.files import read_file
from registry.disk.links import real_path
from registry.errors import RegistryError
from registry.install.content import Entry
from registry.install.lockfile import Locked, encoded
from registry.install.staging import replace_file
from registry.install.targets import Target
from registry.model import DOCUMENT_NAMES, Skill

NAME: Final = "skills-lock.json"
GLOBAL_NAME: Final = ".skill-lock.json"
MAX_BYTES: Final = 16 << 20

_VERSION: Final = 1
_GLOBAL_VERSION: Final = 3

_DESCRIBING: Final = frozenset(
    "source sourceType sourceUrl ref skillPath computedHash skillFolderHash wellKnownDigest "
    "sourceBaseUrl".split()
)
"""What an entry says of where a skill is from; the other keys stay when that changes."""

_COMMIT: Final = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
_INDEX: Final = re.compile("0|[1-9][0-9]{0,9}")

_ORDER: Final = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_WEIGHTS: Final = {character: weight for weight, character in enumerate(_ORDER)}


class ClientLock:
    """The lock at ``path``, as it was read; `save` writes it where it was changed."""

    def __init__(self, path: str, data: dict[str, Any], *, is_global: bool) -> None:
        self.path = path
        self._data = data
        self._is_global = is_global
        self._read = json.dumps(data)
        self._replaced: dict[str, Mapping[str, Any] | None] = {}

    @classmethod
    def find(cls, core: Core, target: Target) -> Self | None:
        """Return the lock that belongs to a project, or to all; None: none is kept there."""
        path = path_of(target)
        try:
            data = json.loads(read_file(path, MAX_BYTES).data)
            wanted = _GLOBAL_VERSION if target.is_global else _VERSION
            if data["version"] != wanted or not _are_entries(data["skills"]):
                raise ValueError(f"it is not of version {wanted}")  # noqa: TRY301
        except FileNotFoundError:
            return None
        except (RegistryError, OSError, ValueError, LookupError, TypeError, RecursionError) as why:
            core.warn(f"{path} can't be kept in step, and stays as it is: {str(why).rstrip('.')}.")
            return None
        return cls(path, data, is_global=target.is_global)

    @property
    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        """What it lists, by the names of the skills."""
        entries: Mapping[str, Mapping[str, Any]] = self._data["skills"]
        return entries

    def put(self, locked: Locked, entries: Sequence[Entry], skill: Skill | None) -> None:
        """List a skill that was put in place; ``skill``: as the registry has it, where it does."""
        old = self.entries.get(locked.name)
        facts = self._described(locked, skill)
        if facts is None:
            if old is None:
                return  # it lists nothing that it can't update
            facts = {key: old[key] for key in old if key in _DESCRIBING}
        facts |= self._hashed(entries, facts)
        kept = {key: one for key, one in (old or {}).items() if key not in _DESCRIBING}
        if self._is_global:
            was = (old or {}).get("skillFolderHash")
            now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            kept.setdefault("installedAt", now)
            if was != facts["skillFolderHash"] or "updatedAt" not in kept:
                kept["updatedAt"] = now
        self._replaced.setdefault(locked.name, old)
        self._data["skills"][locked.name] = {**facts, **kept}

    def drop(self, name: str) -> None:
        """Remove a skill from the list."""
        self._replaced.setdefault(name, self._data["skills"].pop(name, None))

    def replaced(self, name: str) -> dict[str, Mapping[str, Any] | None]:
        """Return by its name what was said of a skill before it was put or dropped (None: nothing).

        Empty, where it was neither.
        """
        return {name: self._replaced[name]} if name in self._replaced else {}

    def put_back(self, entries: Mapping[str, Mapping[str, Any] | None]) -> None:
        """Let it say of skills what it said before (None: nothing), by their names."""
        for name, facts in entries.items():
            if facts is None:
                self._data["skills"].pop(name, None)
            else:
                self._data["skills"][name] = facts

    def save(self) -> None:
        """Write it, where it was changed. Raises OSError."""
        if json.dumps(self._data) == self._read:
            return
        data = self._data
        if not self._is_global:
            skills = {name: data["skills"][name] for name in sorted(data["skills"], key=_key_order)}
            data = {**data, "skills": skills}
        text = encoded(data, sort=False)
        with open_named(os.path.dirname(self.path)) as folder:
            place = Place(folder, os.path.basename(self.path))
            replace_file(place, text.rstrip(b"\n") if self._is_global else text)
        self._read = json.dumps(self._data)

    def _described(self, locked: Locked, skill: Skill | None) -> dict[str, Any] | None:
        """Return where a skill is from in the words of that program; None: it has none for it."""
        if locked.origin is None:
            return self._local(skill)
        url, commit = locked.origin["url"] or "", locked.origin["commit"] or ""
        if not _COMMIT.fullmatch(commit):
            return None
        host, path = urlsplit(url).hostname, urlsplit(url).path.strip("/")
        kind = {"github.com": "github", "gitlab.com": "gitlab"}.get(host or "", "git")
        source = path.removesuffix(".git") if kind == "github" else url
        ref = locked.origin["ref"]
        facts: dict[str, Any] = {"source": source}
        if self._is_global:
            facts |= {"sourceType": kind, "sourceUrl": url} | ({"ref": ref} if ref else {})
        else:
            facts |= {"sourceUrl": url} if kind != "github" else {}
            facts |= ({"ref": ref} if ref else {}) | {"sourceType": kind}
        folder = locked.origin["path"] or "."
        document = next((name for name in DOCUMENT_NAMES if name in locked.files), "SKILL.md")
        return facts | {"skillPath": document if folder == "." else f"{folder}/{document}"}

    def _local(self, skill: Skill | None) -> dict[str, Any] | None:
        if skill is None or not os.path.isdir(skill.path):
            return None
        if self._is_global:
            return {"source": skill.path, "sourceType": "local", "sourceUrl": skill.path}
        folder = real_path(os.path.dirname(self.path))
        relative = os.path.relpath(real_path(skill.path), folder)
        is_above = relative == os.pardir or relative.startswith(f"{os.pardir}/")
        return {"source": relative if is_above else f"./{relative}", "sourceType": "local"}

    def _hashed(self, entries: Sequence[Entry], facts: Mapping[str, Any]) -> dict[str, str]:
        if not self._is_global:
            return {"computedHash": computed_hash(entries)}
        is_tree = facts.get("sourceType") == "github"
        return {"skillFolderHash": git_tree(entries) if is_tree else computed_hash(entries)}


def path_of(target: Target) -> str:
    """Return where that program keeps its lock for a project, or for all."""
    if not target.is_global:
        return os.path.join(target.path, NAME)
    state = os.environ.get("XDG_STATE_HOME")
    if state and os.path.isabs(state):
        return os.path.join(state, "skills", GLOBAL_NAME)
    return os.path.join(os.path.expanduser("~"), ".agents", GLOBAL_NAME)


def computed_hash(entries: Sequence[Entry]) -> str:
    """Return that program's hash of a skill's files; empty where their order can't be told.

    SHA-256 over path and content of each, in the order of JavaScript's ``localeCompare``.
    """
    if not all(one.path.isascii() and one.path.isprintable() for one in entries):
        return ""
    total = hashlib.sha256()
    for one in sorted(entries, key=lambda one: locale_key(one.path)):
        total.update(one.path.encode())
        total.update(one.data)
    return total.hexdigest()


def locale_key(path: str) -> tuple[list[int], list[bool]]:
    """Return the key by which JavaScript's ``localeCompare`` orders printable ASCII.

    By the weights of all characters; where these are equal, small letters come before capitals.
    """
    weights = [_WEIGHTS[character] for character in path.lower()]
    return weights, [character.isupper() for character in path]


def git_tree(entries: Sequence[Entry]) -> str:
    """Return the hash that git has for a folder with these files."""
    below: dict[str, list[Entry]] = {}
    lines: list[tuple[bytes, bytes]] = []
    for one in entries:
        name, _, rest = one.path.partition("/")
        if rest:
            below.setdefault(name, []).append(Entry(rest, one.data, one.executable))
        else:
            mode = b"100755" if one.executable else b"100644"
            named = name.encode(errors="surrogateescape")
            lines.append((named, mode + b" " + named + b"\0" + _git_object(b"blob", one.data)))
    for name, inner in below.items():
        named = name.encode(errors="surrogateescape")
        line = b"40000 " + named + b"\0" + bytes.fromhex(git_tree(inner))
        lines.append((named + b"/", line))  # as git sorts folders
    return _git_object(b"tree", b"".join(line for _, line in sorted(lines))).hex()


def _git_object(kind: bytes, data: bytes) -> bytes:
    return hashlib.sha1(b"%s %d\0" % (kind, len(data)) + data, usedforsecurity=False).digest()


def _are_entries(skills: Any) -> bool:
    return isinstance(skills, dict) and all(isinstance(one, dict) for one in skills.values())


def _key_order(name: str) -> tuple[bool, int, bytes]:
    """Return the key by which JavaScript keeps the keys of an object that was sorted."""
    is_index = _INDEX.fullmatch(name) is not None and int(name) < 2**32 - 1
    return not is_index, int(name) if is_index else 0, name.encode("utf-16-be", "surrogatepass")
