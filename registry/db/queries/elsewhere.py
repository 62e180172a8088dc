"""The skills of one source, as who takes or trusts skills from elsewhere looks at them."""

from typing import NamedTuple

from registry.db.interface import Reader
from registry.db.queries.filters import FROM, order
from registry.db.queries.skills import StoredSkill, select
from registry.model import SECURITY_CODES, Severity


def skills_in(reader: Reader, source: str) -> list[StoredSkill]:
    """Return all skills of a source, by name, whether they are seen or not."""
    wanted = "src.name = ? AND src.enabled = 1 AND s.status <> 'no_document'"
    return select(reader, f"{wanted} ORDER BY {order('name', reverse=False)}", source)


def quarantined(reader: Reader) -> set[tuple[str, str]]:
    """Return the source and folder of each quarantined skill."""
    held = "s.live = 1 AND s.held = 1 AND s.status IN ('ok', 'warning')"
    return set(reader.rows(f"SELECT src.name, s.folder FROM {FROM} WHERE {held}"))


class Suspicious(NamedTuple):
    """A finding about security in a skill; ``held``: the skill is quarantined.

    ``tree_hash``: the files that the finding is about.
    """

    ref: str
    severity: Severity
    code: str
    message: str
    held: bool
    tree_hash: str | None


def suspicious(reader: Reader, source: str) -> list[Suspicious]:
    """Return the findings about security in a source's skills but for mere notes, errors first."""
    marks = ", ".join("?" * len(SECURITY_CODES))
    rows = reader.rows(
        "SELECT s.ref, d.severity, d.code, d.message, s.held, s.tree_hash "
        "FROM diagnostics d "
        "JOIN skills s ON s.id = d.skill_id JOIN sources src ON src.id = s.source_id "
        f"WHERE src.name = ? AND s.live = 1 AND d.severity <> 'info' AND d.code IN ({marks}) "
        "ORDER BY d.severity, s.ref, d.code",
        (source, *sorted(SECURITY_CODES)),
    )
    return [Suspicious._make((*facts, held == 1, tree)) for *facts, held, tree in rows]
