"""Who is visible under which name: shadowing and refs, kept beside each skill.

Both depend on all skills of a name at once, so they are worked out when something changes and
not at each listing. `catalog.resolve` reads handles in the order that makes these refs exact.
"""

from collections.abc import Iterable

from sqlalchemy import Connection

from registry.db.writes.statements import execute

_RANKED = """
WITH ranked AS (
    SELECT s.id, s.name, s.folder, src.name AS source, s.source_id, src.strength,
           CASE WHEN s.status IN ('ok', 'warning') AND src.enabled = 1 THEN 1 ELSE 0 END AS usable
    FROM skills s JOIN sources src ON src.id = s.source_id
    WHERE s.live = 1 {touched}
),
placed AS (
    SELECT r.*, min(CASE WHEN usable = 1 THEN strength END) OVER (PARTITION BY name) AS best
    FROM ranked r
),
judged AS (
    SELECT p.*, CASE WHEN usable = 1 AND strength > best THEN 1 ELSE 0 END AS shadowed,
           -- Which of its namesakes a bare name means: the visible ones, else any.
           CASE WHEN best IS NULL OR (usable = 1 AND strength = best) THEN 1 ELSE 0 END AS meant
    FROM placed p
),
counted AS (
    SELECT j.*, sum(meant) OVER (PARTITION BY name) AS meant_by_name,
           count(*) OVER (PARTITION BY source_id, name) AS in_source
    FROM judged j
),
named AS (
    SELECT c.id, c.shadowed,
        CASE
            WHEN c.meant = 1 AND c.meant_by_name = 1 AND NOT EXISTS (
                SELECT 1 FROM sources other
                WHERE substr(c.name, 1, length(other.name) + 1) = other.name || '/'
            ) THEN c.name
            WHEN c.in_source = 1 AND NOT EXISTS (
                SELECT 1 FROM skills twin
                WHERE twin.source_id = c.source_id AND twin.live = 1
                  AND twin.folder = c.name AND twin.id <> c.id
            ) THEN c.source || '/' || c.name
            ELSE c.source || '/' || c.folder
        END AS ref
    FROM counted c
)
UPDATE skills SET shadowed = named.shadowed, ref = named.ref FROM named
WHERE skills.id = named.id
  AND (skills.shadowed <> named.shadowed OR skills.ref <> named.ref)
"""

_ALL_ABOVE = 2000
"""From this many names on, going over all skills is cheaper than naming them."""


def refresh_names(connection: Connection, names: Iterable[str] | None) -> None:
    """Work out shadowing and refs anew for the skills of ``names`` (None: for all)."""
    touched = None if names is None else set(names)
    if touched is None or len(touched) > _ALL_ABOVE:
        execute(connection, _RANKED.format(touched=""))
    elif touched:
        execute(connection, _RANKED.format(touched="AND s.name {in_array}"), sorted(touched))
