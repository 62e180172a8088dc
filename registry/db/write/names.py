"""Shadowing, copies and refs: which skills are visible under which name.

Shadowing, copies and refs depend on all skills with a name. Computing them for each listing would
be slow. So they are stored, and updated when a skill or source changes. `catalog.resolve` looks
handles up in an order that finds each skill by its stored ref.

A project's skills shadow other skills only for users who work in the project. So each project is a
separate zone, and all sources without a project form one zone. Stored values don't depend on the
working folder (`db.visibility` adds the values that do). A name without a source is a ref only if
it means one skill in all zones together. The column ``bare`` is 1 if the name means one skill in
the skill's own zone.

Only the members of a team see the team's skills. These skills must not affect other skills: they
must not shadow them or make their names ambiguous. So names are resolved separately for each team,
and for the sources without a team. Refs of a team's skills always contain the source.

Scope and priority compare only sources of the same owner. Between owners, only ``precedence``
counts, which an admin sets. So no owner can shadow another owner's skill by a setting. A SQLite
file has no owners, so scope and priority compare all its sources.

The module uses plain SQL, because on a server this SQL is also the body of a procedure (migration
0015).
"""

from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection

from registry.db.postgres.index import CONCAT
from registry.db.visibility import IMPORTING, RESOLVING
from registry.db.write.statements import execute

MAX_COPIES: Final = 50
"""Maximum number of copies for which a skill stores refs."""

_RANKED = f"""
WITH ranked AS (
    SELECT s.id, s.name, s.folder, s.position, s.tree_hash, src.name AS source, s.source_id,
           src.strength, src.precedence, coalesce(src.owner, '') AS owner,
           coalesce(src.team, '') AS team,
           CASE WHEN src.scope = 'project' THEN src.host || ':' || src.project ELSE '' END AS zone,
           -- What arrives is worked out as if there were nothing else, until all of it is there.
           CASE WHEN src.enabled = {IMPORTING} THEN src.id ELSE 0 END AS world,
           CASE WHEN s.status IN ('ok', 'warning') AND s.held = 0
               AND src.enabled IN (1, {IMPORTING}, {RESOLVING}) THEN 1 ELSE 0 END AS usable,
           CASE WHEN src.enabled = {RESOLVING} THEN 1 ELSE 0 END AS joins
    FROM skills s JOIN sources src ON src.id = s.source_id
    WHERE s.live = 1 {{touched}}
),
highest AS (
    SELECT r.*,
           max(CASE WHEN usable = 1 THEN precedence END) OVER same_name AS first,
           max(CASE WHEN usable = 1 AND joins = 0 THEN precedence END) OVER same_name AS first_yet,
           min(CASE WHEN usable = 1 THEN strength END) OVER same_owner AS best,
           min(CASE WHEN usable = 1 AND joins = 0 THEN strength END) OVER same_owner AS best_yet,
           min(source_id) OVER (
               PARTITION BY name, team, zone, world, usable, tree_hash, owner
           ) AS oldest
    FROM ranked r
    WINDOW same_name AS (PARTITION BY name, team, zone, world),
        same_owner AS (PARTITION BY name, team, zone, world, precedence, owner)
),
weighed AS (
    -- What joins hides nothing until it is seen itself.
    SELECT h.*,
           CASE WHEN usable = 1 AND (precedence < first OR strength > best)
               THEN 1 ELSE 0 END AS beaten,
           CASE WHEN usable = 1 AND (precedence < first_yet OR strength > best_yet)
               THEN 1 ELSE 0 END AS beaten_yet
    FROM highest h
),
placed AS (
    SELECT w.*,
           -- One name and the same files: copies. One that no stronger skill hides stands for all,
           -- of several owners' that of the oldest source: no owner's scope or priority decides.
           CASE WHEN usable = 1 AND tree_hash IS NOT NULL
               THEN count(*) OVER so_far ELSE 1 END AS nth,
           CASE WHEN usable = 1 AND tree_hash IS NOT NULL
               THEN sum(1 - joins) OVER so_far_yet ELSE 1 END AS nth_yet
    FROM weighed w
    WINDOW so_far AS (
            PARTITION BY name, team, zone, world, usable, tree_hash
            ORDER BY beaten, precedence DESC, oldest, strength, source_id, position
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ),
        so_far_yet AS (
            PARTITION BY name, team, zone, world, usable, tree_hash
            ORDER BY beaten_yet, precedence DESC, oldest, strength, source_id, position
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        )
),
judged AS (
    SELECT p.*, CASE WHEN CASE WHEN joins = 1 THEN nth ELSE nth_yet END > 1
               OR CASE WHEN joins = 1 THEN beaten ELSE beaten_yet END = 1
               THEN 1 ELSE 0 END AS shadowed,
           CASE WHEN usable = 1 AND beaten = 0 AND nth = 1 THEN 1 ELSE 0 END AS seen
    FROM placed p
),
counted AS (
    SELECT j.*, sum(seen) OVER (PARTITION BY name, team, world) AS seen_by_name,
           count(*) OVER (PARTITION BY name, team, world) AS by_name,
           sum(seen) OVER (PARTITION BY name, team, zone, world) AS seen_in_zone,
           count(*) OVER (PARTITION BY source_id, name) AS in_source
    FROM judged j
),
alone AS (
    -- Which of its namesakes a bare name means: those that somebody sees, else any.
    SELECT c.*, CASE WHEN (seen_by_name = 0 AND by_name = 1 OR seen = 1 AND seen_in_zone = 1)
            AND NOT EXISTS (
                SELECT 1 FROM sources other
                WHERE substr(c.name, 1, length(other.name) + 1) = other.name || '/'
            ) AND team = '' THEN 1 ELSE 0 END AS bare
    FROM counted c
),
named AS (
    SELECT c.*,
        CASE
            WHEN c.bare = 1 AND c.seen_by_name <= 1 THEN c.name
            WHEN c.in_source = 1 AND NOT EXISTS (
                SELECT 1 FROM skills twin
                WHERE twin.source_id = c.source_id AND twin.live = 1
                  AND twin.folder = c.name AND twin.id <> c.id
            ) THEN c.source || '/' || c.name
            ELSE c.source || '/' || c.folder
        END AS ref
    FROM alone c
),
alike AS (
    SELECT name, team, world, tree_hash, max(refs) AS refs FROM (
        SELECT n.name, n.team, n.world, n.tree_hash, {{{{concat}}}}(n.ref, '\n') OVER (
            PARTITION BY n.name, n.team, n.world, n.tree_hash
            ORDER BY n.precedence DESC, n.oldest, n.strength, n.source_id, n.position
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS refs
        FROM (
            SELECT named.*, row_number() OVER (
                PARTITION BY name, team, world, tree_hash
                ORDER BY precedence DESC, oldest, strength, source_id, position
            ) AS place
            FROM named WHERE usable = 1 AND tree_hash IS NOT NULL AND by_name > 1
        ) n
        WHERE n.place <= {MAX_COPIES + 1}
    ) listed
    GROUP BY name, team, world, tree_hash HAVING count(*) > 1
),
told AS (
    SELECT n.id, n.shadowed, n.bare, n.ref,
           CASE WHEN n.usable = 1 THEN coalesce(a.refs, '') ELSE '' END AS copies
    FROM named n
    LEFT JOIN alike a ON a.name = n.name AND a.team = n.team AND a.world = n.world
        AND a.tree_hash = n.tree_hash
)
UPDATE skills SET shadowed = told.shadowed, bare = told.bare, ref = told.ref, copies = told.copies
FROM told
WHERE skills.id = told.id AND (skills.shadowed <> told.shadowed OR skills.bare <> told.bare
    OR skills.ref <> told.ref OR skills.copies <> told.copies)
"""

_AT_ONCE: Final = 2_500
"""Maximum number of names that one statement updates in a file.

The limit exists because the statement sorts rows in memory.
"""

_BELOW: Final = (
    "SELECT DISTINCT name FROM skills WHERE live = 1 AND name >= {0} || '/' AND name < {0} || '0'"
)
"""SELECT for the names that begin with a source's name and a slash.

The upper bound uses '0', because '0' follows '/' in the sort order of text.
"""

_ALL_ON_A_SERVER: Final = 20_000
"""Maximum number of names that a server updates separately.

For more names, an update of all skills takes no longer.
"""


def procedure(schema: str) -> str:
    """Return the SQL that creates the server's procedure for `refresh_names`.

    A writer may change only its own sources, but skills of all roles share names. So the procedure
    runs as the owner of the tables. If you change the SQL, add a migration. ``schema`` must be
    quoted.
    """
    whole = _RANKED.format(touched="").format(concat=CONCAT)
    some = _RANKED.format(touched="AND s.name = ANY (wanted)").format(concat=CONCAT)
    return (
        "CREATE OR REPLACE PROCEDURE registry_refresh_names(wanted text[]) LANGUAGE plpgsql "
        f"SECURITY DEFINER SET search_path = {schema}, pg_temp AS $body$BEGIN "
        f"IF wanted IS NULL THEN {whole}; ELSE {some}; END IF; END$body$"
    )


def procedure_below(schema: str) -> str:
    """Return the SQL that creates the server's procedure for `refresh_names_below`.

    The procedure also runs as the owner of the tables, because a writer can't see the names of
    other teams' skills.
    """
    return (
        "CREATE OR REPLACE PROCEDURE registry_refresh_names_below(source text) LANGUAGE plpgsql "
        f"SECURITY DEFINER SET search_path = {schema}, pg_temp AS $body$"
        f"DECLARE below text[] := ARRAY({_BELOW.format('source')}); "
        "BEGIN CALL registry_refresh_names(below); END$body$"
    )


def refresh_names(connection: Connection, names: Iterable[str] | None) -> None:
    """Update shadowing, copies and refs of the skills with these ``names``.

    If ``names`` is None, update all skills.
    """
    touched = None if names is None else set(names)
    if connection.dialect.name == "postgresql":
        if touched is None or touched:
            known = None if touched is None or len(touched) > _ALL_ON_A_SERVER else sorted(touched)
            connection.exec_driver_sql("CALL registry_refresh_names(%s)", (known,))
    elif touched is None:
        execute(connection, _RANKED.format(touched=""))
    else:
        ordered = sorted(touched)
        for start in range(0, len(ordered), _AT_ONCE):
            some = ordered[start : start + _AT_ONCE]
            execute(connection, _RANKED.format(touched="AND s.name {in_array}"), some)


def refresh_names_below(connection: Connection, source: str) -> None:
    """Update the refs of skills whose names begin with the new source's name and a slash."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("CALL registry_refresh_names_below(%s)", (source,))
        return
    below = execute(connection, _BELOW.format("?"), source, source)
    refresh_names(connection, below.scalars())
