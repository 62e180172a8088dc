"""Read the stored findings of checks."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import ClassVar, Final, NamedTuple

from registry.db.interface import Condition, Reader
from registry.db.read.skills import BY_NAME, FROM
from registry.model import SECURITY_CODES, Diagnostic, FindingCategory, Severity, Value


@dataclass(frozen=True, slots=True)
class FindingCount(Value):
    """A finding's code and severity, how often the pair occurs, and in how many skills."""

    KEYS: ClassVar = ("code", "severity", "category", "findings", "skills")

    code: str
    severity: Severity
    findings: int
    skills: int

    @property
    def category(self) -> FindingCategory:
        """The category of the code, as in `Diagnostic`."""
        return "security" if self.code in SECURITY_CODES else "format"


@dataclass(frozen=True, slots=True)
class Finding(Value):
    """A finding, and the ref of the skill that has it."""

    ref: str
    name: str
    source: str
    finding: Diagnostic


def count_findings(reader: Reader, condition: Condition) -> list[FindingCount]:
    """Count the findings in the skills that meet a condition, by code and severity.

    Security findings come first, then errors. The result is cached until the database changes.
    """

    def load(reader: Reader) -> list[FindingCount]:
        rows = reader.rows(
            "SELECT d.code, d.severity, count(*), count(DISTINCT d.skill_id) "
            # With `+`, SQLite reads the findings in the order of their codes.
            "FROM diagnostics d WHERE +d.skill_id IN "
            f"(SELECT s.id FROM {FROM} WHERE {condition[0]}) GROUP BY d.code, d.severity",
            list(condition[1]),
        )
        found = [FindingCount(*row) for row in rows]
        rank = {"error": 0, "warning": 1, "info": 2}
        return sorted(
            found,
            key=lambda one: (
                one.category != "security",
                rank.get(one.severity, 3),
                -one.findings,
                one.code,
            ),
        )

    return reader.remembered(f"findings {condition[0]} {list(condition[1])}", load)


def findings_of(
    reader: Reader,
    condition: Condition,
    code: str,
    severity: str | None = None,
    *,
    limit: int,
    offset: int,
    frequent: bool = False,
) -> list[Finding]:
    """Return a page of the findings with one code, sorted by severity, skill name and line.

    If they are ``frequent`` and have one ``severity``, the skills are read in the order of their
    names up to the page. Otherwise all findings with the code are read and sorted.
    """
    only, values = ("", [code]) if severity is None else ("AND d.severity = ? ", [code, severity])
    order = f"{BY_NAME}, d.line, d.id"
    if severity is None:
        order = f"CASE d.severity WHEN 'error' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, {order}"
    # SQLite keeps the order of a CROSS JOIN.
    tables = "diagnostics d JOIN skills s ON s.id = d.skill_id"
    if frequent and severity is not None:
        tables = "skills s CROSS JOIN diagnostics d"
    rows = reader.rows(
        f"SELECT {reader.visibility.ref}, s.name, src.name, d.code, d.severity, d.message, d.line, "
        f"d.fix, d.path FROM {tables} JOIN sources src ON src.id = s.source_id "
        f"WHERE d.skill_id = s.id AND d.code = ? {only}AND {condition[0]} "
        f"ORDER BY {order} LIMIT ? OFFSET ?",
        [*values, *condition[1], limit, offset],
    )
    return [Finding(ref, name, source, Diagnostic(*facts)) for ref, name, source, *facts in rows]


SECURITY_CODES_SQL: Final = ", ".join(f"'{code}'" for code in sorted(SECURITY_CODES))
"""The codes of security findings, as a list for SQL."""

LEVELS: Final = (
    "SELECT skill_id, min(severity) AS level FROM diagnostics WHERE skill_id IS NOT NULL "
    f"AND severity IN ('error', 'warning') AND code IN ({SECURITY_CODES_SQL}) GROUP BY skill_id"
)
"""SELECT for the severity of the worst security finding of each version that has security findings.

``min`` returns the worst severity, because "error" comes before "warning" in the alphabet.
"""

WITH_SECURITY: Final[Mapping[str, str]] = {
    **{
        level: f"s.id IN (SELECT skill_id FROM ({LEVELS}) l WHERE level = '{level}')"
        for level in ("error", "warning")
    },
    "none": f"s.id NOT IN (SELECT skill_id FROM ({LEVELS}) l)",
}
"""For each `SecurityLevel`, the SQL condition that selects the skills with this level."""


class SecurityFinding(NamedTuple):
    """A security finding in a skill.

    ``quarantined`` tells whether the skill is quarantined. ``tree_hash`` is the hash of the files
    that were checked.
    """

    ref: str
    severity: Severity
    code: str
    message: str
    quarantined: bool
    tree_hash: str | None


MAX_REFS: Final = 200
"""Maximum number of refs that a query names; with more refs, it reads the whole source."""


def security_findings(
    reader: Reader, source: str, refs: Collection[str] | None = None
) -> list[SecurityFinding]:
    """Return the security errors and warnings in a source's skills, errors first.

    If ``refs`` is given, only the findings in these skills are returned.
    """
    marks = ", ".join("?" * len(SECURITY_CODES))
    few = [] if refs is None or len(refs) > MAX_REFS else list(refs)
    only = f"AND s.ref IN ({', '.join('?' * len(few))}) " if few else ""
    rows = reader.rows(
        "SELECT s.ref, d.severity, d.code, d.message, s.held, s.tree_hash "
        "FROM diagnostics d "
        "JOIN skills s ON s.id = d.skill_id JOIN sources src ON src.id = s.source_id "
        f"WHERE src.name = ? AND s.live = 1 AND d.severity <> 'info' AND d.code IN ({marks}) "
        f"{only}ORDER BY d.severity, s.ref, d.code",
        (source, *sorted(SECURITY_CODES), *few),
    )
    found = [SecurityFinding._make((*facts, held == 1, tree)) for *facts, held, tree in rows]
    return found if refs is None else [one for one in found if one.ref in refs]


class StoredFindings(NamedTuple):
    """The findings in a usable version, with the fingerprint of its folder.

    ``tags`` holds one tag in each line. ``front_matter`` is JSON; it is None if there are no tags.
    """

    position: str
    fingerprint: str
    tree_hash: str | None
    name: str
    tags: str
    front_matter: str | None
    findings: tuple[Diagnostic, ...]


PAGE: Final = 500
"""Number of skills whose findings are read with one query."""

_FINDINGS: Final = (
    "SELECT s.*, d.code, d.severity, d.message, d.line, d.fix, d.path FROM ("
    "SELECT id, position, fingerprint, tree_hash, name, tags, CASE WHEN tags <> '' THEN "
    "(SELECT front_matter FROM documents WHERE skill_id = skills.id) END AS front_matter "
    "FROM skills WHERE source_id = ? AND live = 1 AND status IN ('ok', 'warning') "
    "AND position > ? ORDER BY position LIMIT ?) s "
    "LEFT JOIN diagnostics d ON d.skill_id = s.id ORDER BY s.position, d.id"
)


def stored_findings(reader: Reader, source_id: int) -> Iterator[StoredFindings]:
    """Yield the findings of the current versions of a source, in the order of `position`.

    The findings are read page by page, because the caller reads files in between, and one long read
    could block writers.
    """
    last, number = "", PAGE
    while number == PAGE:
        number = 0
        rows = reader.rows(_FINDINGS, (source_id, last, PAGE))
        for _, found in groupby(rows, key=itemgetter(0)):
            first, *others = found
            facts = first[1:7]
            findings = tuple(Diagnostic(*row[7:]) for row in (first, *others) if row[7])
            yield StoredFindings._make((*facts, findings))
            number, last = number + 1, first[1]


def links_outside(reader: Reader) -> list[tuple[int, int, str]]:
    """Return (id, source id, folder) of versions that are links to paths outside all sources."""
    return reader.rows(
        "SELECT s.id, s.source_id, s.folder FROM diagnostics d JOIN skills s ON s.id = d.skill_id "
        "WHERE d.code = 'link-outside' AND d.path IS NULL AND s.live = 1 AND s.file_count = 0 "
        "ORDER BY s.id"
    )


def links_known(
    reader: Reader, host: str, messages: Sequence[str], most: int
) -> list[tuple[str, str, str]]:
    """Return (root, folder, message) of the links in a host's sources with one of these messages.

    ``root`` is the path of the source. Don't trust it, because any user with write access can
    register a source under any host name.
    """
    marks = ", ".join("?" * len(messages))
    return reader.rows(
        "SELECT src.path, d.folder, d.message FROM diagnostics d "
        "JOIN sources src ON src.id = d.source_id WHERE d.skill_id IS NULL "
        "AND d.code = 'link-known' AND src.host = ? "
        f"AND d.message IN ({marks}) ORDER BY src.path, d.folder LIMIT ?",
        (host, *messages, most),
    )


def notice_digest(reader: Reader, source_id: int) -> list[tuple[str, str]]:
    """Return (folder, code) of each stored finding about a path that is not a skill."""
    sql = (
        "SELECT folder, code FROM diagnostics WHERE source_id = ? AND skill_id IS NULL "
        "ORDER BY folder, code"
    )
    return reader.rows(sql, (source_id,))
