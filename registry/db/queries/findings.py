"""What checks found in the skills that are stored, of all of them together."""

from dataclasses import dataclass
from typing import ClassVar

from registry.db.asked import Condition
from registry.db.interface import Reader
from registry.model import SECURITY_CODES, Diagnostic, FindingCategory, Severity, Value


@dataclass(frozen=True, slots=True)
class FindingCount(Value):
    """How often a finding of this code and severity was made, and in how many skills."""

    KEYS: ClassVar = ("code", "severity", "category", "findings", "skills")

    code: str
    severity: Severity
    findings: int
    skills: int

    @property
    def category(self) -> FindingCategory:
        """As that of `Diagnostic`."""
        return "security" if self.code in SECURITY_CODES else "format"


@dataclass(frozen=True, slots=True)
class Finding(Value):
    """A finding, and the skill in which it was made."""

    ref: str
    name: str
    source: str
    finding: Diagnostic


def count_findings(reader: Reader, condition: Condition) -> list[FindingCount]:
    """Count the findings in skills for which a condition holds, security first, then the worst.

    The answer is kept until the database changes.
    """

    def load(reader: Reader) -> list[FindingCount]:
        rows = reader.rows(
            "SELECT d.code, d.severity, count(*), count(DISTINCT d.skill_id) "
            f"FROM diagnostics d JOIN skills s ON s.id = d.skill_id "
            f"JOIN sources src ON src.id = s.source_id WHERE {condition[0]} "
            "GROUP BY d.code, d.severity",
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
    reader: Reader, condition: Condition, code: str, *, limit: int, offset: int
) -> list[Finding]:
    """Return a page of the findings of one code, by the skills' names, and their lines."""
    rows = reader.rows(
        f"SELECT {reader.sight.ref}, s.name, src.name, d.code, d.severity, d.message, d.line, "
        f"d.fix, d.path FROM diagnostics d JOIN skills s ON s.id = d.skill_id "
        f"JOIN sources src ON src.id = s.source_id WHERE d.code = ? AND {condition[0]} "
        "ORDER BY s.name_key, s.id, d.line, d.id LIMIT ? OFFSET ?",
        [code, *condition[1], limit, offset],
    )
    return [Finding(ref, name, source, Diagnostic(*facts)) for ref, name, source, *facts in rows]
