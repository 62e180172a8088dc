"""What a check says of one folder: read and looked through now, or as a sync found it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Final, NamedTuple

from registry.core import Core
from registry.db.read.findings import StoredFindings, stored_findings
from registry.disk.paths import position
from registry.disk.private import is_ours_alone
from registry.disk.scanned import WALK_CODES, ScannedFolder
from registry.document.mend import is_perhaps_untidy, untidy, untidy_tags
from registry.document.parse import parse_document
from registry.document.security import MAX_SKILL_BYTES
from registry.model import Diagnostic, Source
from registry.sync.reading import Recent, hash_files, is_current, mark_of, read_folder, tree_hash

_KEY: Final = attrgetter("sort_key")


class Examined(NamedTuple):
    """The name of a skill and all that is found in it, the worst first."""

    name: str
    findings: Sequence[Diagnostic]


class Examiner:
    """Examines folders below ``root``, in the order of a walk.

    ``source``: the one whose folder ``root`` is. What its last sync found in a folder is found
    again where its files, as they are read now, have the stored hash, and were looked through by
    the rules of today. That is believed of a database in a file which nobody but this user can
    have written: the rows of a server, and of a file that others may write, are theirs.
    """

    def __init__(self, core: Core, root: str, source: Source | None) -> None:
        self._root = root
        self._limits = core.settings.limits
        self._dialects = core.dialects
        self._mark = mark_of(core.dialects)
        self._recent = Recent()
        self._known: Iterator[StoredFindings] = iter(())
        if source is not None and not core.host and is_ours_alone(core.backend.path):
            self._known = stored_findings(core.reader, source.id)
        self._next = next(self._known, None)

    def examine(self, found: ScannedFolder) -> Examined:
        """Return what there is to say of a folder."""
        known = self._known_of(found)
        if known is not None and (examined := self._again(found, known)) is not None:
            return examined
        reading = read_folder(
            self._root, found, self._limits, {}, dialects=self._dialects, recent=self._recent
        )
        data, document = reading.data, reading.document
        if data is None or document is None:
            return Examined(found.name, reading.findings)
        tidy = untidy(data, document) if document.usable else ()
        return Examined(document.name, _with(reading.findings, tidy, found.document))

    def _known_of(self, found: ScannedFolder) -> StoredFindings | None:
        """Return what is stored of a folder, if it may hold by what the walk says of it."""
        here = position(found.folder)
        while self._next is not None and self._next.position < here:
            self._next = next(self._known, None)
        known = self._next
        if known is None or known.position != here or not is_current(known.fingerprint, self._mark):
            return None
        told = [one for one in known.findings if one.code in WALK_CODES]
        if sorted(told, key=_KEY) != sorted(found.problems, key=_KEY):
            return None
        # Of more than is looked through, a sync that read a part of it anew looked at other parts.
        return known if sum(file.size for file in found.files) <= MAX_SKILL_BYTES else None

    def _again(self, found: ScannedFolder, known: StoredFindings) -> Examined | None:
        """Return what was found before, if each byte is as it was then."""
        hashed = hash_files(self._root, found, {}, self._limits)
        now = tree_hash(found, hashed.hashes)
        if hashed.data is None or now is None or now != known.tree_hash:
            return None
        tidy: Iterable[Diagnostic] = ()
        if is_perhaps_untidy(hashed.data):
            document = parse_document(hashed.data, folder_name=found.name, dialects=self._dialects)
            tidy = untidy(hashed.data, document)
        elif known.front_matter is not None:
            tidy = untidy_tags(json.loads(known.front_matter), known.tags.split("\n"))
        return Examined(known.name, _with(known.findings, tidy, found.document))


def _with(
    findings: Sequence[Diagnostic], tidy: Iterable[Diagnostic], document: str | None
) -> Sequence[Diagnostic]:
    """Add what only a check looks for, which is about the document."""
    more = [replace(one, path=document) for one in tidy]
    return sorted([*findings, *more], key=_KEY)
