"""What a server needs to rank by BM25: sizes of texts, totals, and the words of each source.

Nothing changes in a SQLite file, where FTS5 keeps all of this.

Revision ID: 0030
Revises: 0029
"""

import re
from pathlib import Path

from registry.db.migrate import owned_like_skills, run_on_server

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

# As in migration 0015.
ME = "(SELECT CAST(session_user AS text))"
SOURCE_SEEN = "(SELECT registry_sees_all()) OR source_id IN (SELECT id FROM sources)"
SOURCE_OWN = f"source_id IN (SELECT id FROM sources WHERE owner = {ME})"

LISTED = "{0}.live = 1 AND {0}.status IN ('ok', 'warning') AND {0}.held = 0 AND {0}.shadowed = 0"

# How often a text says what was asked for. A word counts four times in a name and twice in a tag.
# What a body says is guessed by its size. It is counted later, and only in the best ones, because
# that costs ten times as much.
TIMES = {
    "head": "4 * ts_rank_cd('{0.25, 0.25, 0.5, 1}', t.head, asked)",
    "body": "1 + t.body_size / usual",
}
SEEN = (
    "t.skill_id IN (SELECT s.id FROM skills s JOIN sources o ON o.id = s.source_id "
    "WHERE o.team IS NULL OR o.owner = session_user OR o.team = ANY (mine))"
)


def function(head: str, result: str, all_of: str) -> str:
    """Return a function of the owner, for which a policy does not keep an index from being used.

    @@ might tell of what it looks at. `result` is made of the texts `t` of a place.
    """
    select = f"SELECT {result} INTO matches FROM (SELECT {all_of} FROM search_texts t WHERE"

    def texts(seen: str) -> str:
        head, body = (
            select.format(place=place, times=TIMES[place])
            + f" t.{place} @@ asked{seen} LIMIT most) t;"
            for place in ("head", "body")
        )
        return f"IF place = 'head' THEN {head} ELSE {body} END IF;"

    return f"""
CREATE FUNCTION {head}
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
DECLARE mine text[];
BEGIN
    IF registry_sees_all() THEN
        {texts("")}
    ELSE
        mine := registry_teams();
        {texts(f" AND {SEEN}")}
    END IF;
END$body$;
"""


# In one array: each item has the id of a text in its lower half, and above it how well the text
# says what was asked for, from 0 to 1e8 (BM25 without the weight of the word; `usual` is the
# average number of words).
LONG = "(0.3 + 0.9 * t.size / usual)"
MATCH = function(
    "registry_match(place text, asked tsquery, usual double precision, most bigint, "
    "OUT matches bigint[])",
    f"array_agg((CAST(1e8 * (1 - {LONG} / ({LONG} + t.times)) AS bigint) << 32) + t.skill_id)",
    "t.skill_id, t.{place}_size AS size, {times} AS times",
) + function(
    "registry_count(place text, asked tsquery, most bigint, OUT matches bigint)", "count(*)", "1"
)

ON_SERVER = f"""
-- The numbers of words.
CREATE FUNCTION pg_temp.size(words tsvector) RETURNS integer LANGUAGE sql AS
    'SELECT CAST(coalesce(sum(cardinality(positions)), 0) AS integer) FROM unnest(words)';
ALTER TABLE search_texts ADD head_size integer, ADD body_size integer;
-- This writes the table once, and its indexes at the end.
ALTER TABLE search_texts ALTER head_size TYPE integer USING pg_temp.size(head),
    ALTER body_size TYPE integer USING pg_temp.size(body),
    -- Vectors hardly get smaller, so a server need not try.
    ALTER body SET STORAGE EXTERNAL;
ALTER TABLE search_texts ALTER head_size SET NOT NULL, ALTER body_size SET NOT NULL;
DROP FUNCTION pg_temp.size(tsvector);

-- The words in names, tags and descriptions; also those of skills that are gone.
CREATE TABLE search_words (
    source_id integer NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    word text COLLATE "C" NOT NULL
);
INSERT INTO search_words SELECT DISTINCT s.source_id, w COLLATE "C"
    FROM search_texts t JOIN skills s ON s.id = t.skill_id, unnest(tsvector_to_array(t.head)) w;
-- Not unique: else one writer would wait for another one with the same word.
CREATE INDEX ix_search_words_source_id ON search_words (source_id, word);
ALTER TABLE search_words ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON search_words FOR SELECT USING ({SOURCE_SEEN});
CREATE POLICY added ON search_words FOR INSERT WITH CHECK ({SOURCE_OWN});

-- Of each source how many skills it lists, how many texts of current versions the index has, and
-- how many words they have; the sum of a source's rows counts.
CREATE TABLE totals (
    source_id integer NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    listed bigint NOT NULL, texts bigint NOT NULL, head_size bigint NOT NULL,
    body_size bigint NOT NULL
);
CREATE INDEX ix_totals_source_id ON totals (source_id);
ALTER TABLE totals ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON totals FOR SELECT USING ({SOURCE_SEEN});

CREATE FUNCTION registry_count_totals() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    DELETE FROM totals;
    INSERT INTO totals
    SELECT s.source_id, count(*) FILTER (WHERE {LISTED.format("s")}), count(t.skill_id),
        coalesce(sum(t.head_size), 0), coalesce(sum(t.body_size), 0)
    FROM skills s LEFT JOIN search_texts t ON t.skill_id = s.id WHERE s.live = 1 GROUP BY 1;
END$body$;
SELECT registry_count_totals();

-- A writer adds a row, and sums up the rows that no other writer has locked. So no writer waits.
CREATE FUNCTION registry_keep_totals() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    -- Not by a join of both tables: its plan, once made for a single row, would stay for many.
    WITH changed AS MATERIALIZED (
        SELECT source_id, id, live, listed, sum(sign) AS sign FROM (
            SELECT source_id, id, live, {LISTED.format("b")} AS listed, -1 AS sign FROM before b
            UNION ALL
            SELECT source_id, id, live, {LISTED.format("a")}, 1 FROM after a
        ) e GROUP BY 1, 2, 3, 4 HAVING sum(sign) <> 0
    ),
    added AS MATERIALIZED (
        SELECT c.source_id, coalesce(sum(c.sign) FILTER (WHERE c.listed), 0) AS listed,
            coalesce(sum(c.sign) FILTER (WHERE t.skill_id IS NOT NULL), 0) AS texts,
            coalesce(sum(c.sign * t.head_size), 0) AS head_size,
            coalesce(sum(c.sign * t.body_size), 0) AS body_size
        FROM changed c LEFT JOIN search_texts t ON t.skill_id = c.id AND c.live = 1 GROUP BY 1
    ),
    known AS (
        DELETE FROM totals WHERE ctid = ANY (ARRAY(
            SELECT t.ctid FROM totals t WHERE t.source_id IN (SELECT source_id FROM added)
            FOR UPDATE SKIP LOCKED
        )) RETURNING *
    )
    INSERT INTO totals
    SELECT source_id, sum(listed), sum(texts), sum(head_size), sum(body_size)
    FROM (SELECT * FROM known UNION ALL SELECT * FROM added) t GROUP BY 1;
    RETURN NULL;
END$body$;
CREATE TRIGGER totals AFTER UPDATE ON skills REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION registry_keep_totals();

{MATCH}
DROP FUNCTION registry_find(text, tsquery, bigint);
DROP FUNCTION registry_common_words();

""" + owned_like_skills(
    "TABLE search_words",
    "TABLE totals",
    "ROUTINE registry_count_totals()",
    "ROUTINE registry_keep_totals()",
    "ROUTINE registry_match(text, tsquery, double precision, bigint)",
    "ROUTINE registry_count(text, tsquery, bigint)",
)


OFF_SERVER = """
DROP TRIGGER totals ON skills;
DROP FUNCTION registry_match(text, tsquery, double precision, bigint),
    registry_count(text, tsquery, bigint), registry_keep_totals(), registry_count_totals();
DROP TABLE search_words, totals;
ALTER TABLE search_texts ALTER body SET STORAGE EXTENDED, DROP head_size,
    DROP body_size;
"""


def upgrade() -> None:
    run_on_server(ON_SERVER)


def downgrade() -> None:
    server = Path(__file__).with_name("0015_server.sql").read_text(encoding="utf-8")
    made = "CREATE FUNCTION {}.*?END\\$body\\$;"
    before = ("registry_find", "registry_common_words")
    found = (re.search(made.format(one), server, re.DOTALL) for one in before)
    run_on_server(OFF_SERVER + "".join(one[0] for one in found if one))
