"""Read facts that help users choose a skill: security findings, use, size and deprecation."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from registry.db.interface import Reader
from registry.db.read.findings import SECURITY_CODES_SQL
from registry.db.read.labels import deprecated
from registry.db.read.skills import near_places
from registry.model import Skill


class Signs(NamedTuple):
    """Facts about a skill that help users choose it in a list.

    ``errors`` and ``warnings`` count the security findings. ``read`` counts how often tools read
    the skill. ``deprecated`` is the warning that the skill's current version is deprecated.
    """

    errors: int = 0
    warnings: int = 0
    files: int = 0
    bytes: int = 0
    read: int = 0
    deprecated: str | None = None


def signs(reader: Reader, skills: Sequence[Skill]) -> Mapping[tuple[str, str], Signs]:
    """Return the `Signs` of these skills, by source and folder."""
    if not skills:
        return {}
    condition, values = near_places(skills)
    counts = ", ".join(
        f"(SELECT count(*) FROM diagnostics d WHERE d.skill_id = s.id AND d.severity = '{severity}'"
        f" AND d.code IN ({SECURITY_CODES_SQL}))"
        for severity in ("error", "warning")
    )
    rows = reader.rows(
        f"SELECT src.name, s.folder, {counts}, s.file_count, s.bytes, "
        "coalesce((SELECT u.read FROM usage u WHERE u.uid = s.uid), 0) "
        "FROM skills s JOIN sources src ON src.id = s.source_id "
        f"WHERE s.live = 1 AND {condition}",
        values,
    )
    wanted = {(one.source, one.folder) for one in skills}
    warnings = deprecated(reader, skills)
    return {
        (source, folder): Signs._make((*counted, warnings.get((source, folder))))
        for source, folder, *counted in rows
        if (source, folder) in wanted
    }
