-- What only a PostgreSQL server has at revision 0015, after the tables: full-text search, and
-- what lets the server itself refuse, hide and note things, whatever a client says.
-- `:schema` is the quoted name of the current schema.

-- Counts what changed the catalogue.
CREATE TABLE data_version (number BIGINT NOT NULL);
INSERT INTO data_version VALUES (0);

-- The role that used the name of a machine first.
CREATE TABLE hosts (host text COLLATE "C" PRIMARY KEY, role text COLLATE "C" NOT NULL);

-- Roles that see, of all sources, only those of these teams and of none.
CREATE TABLE teams (
    role text COLLATE "C" NOT NULL, team text COLLATE "C" NOT NULL, PRIMARY KEY (role, team)
);

-- In whose history a content stands: contents are shared, and seen by who sees one of these.
CREATE TABLE content_uses (
    hash text COLLATE "C" NOT NULL, uid text COLLATE "C" NOT NULL, PRIMARY KEY (hash, uid)
);
CREATE INDEX ix_content_uses_uid ON content_uses (uid);

-- A sync holds a lease: behind a pooler no connection belongs to one client. Who publishes is a
-- role on a host: of one host's sources each belongs to one role.
CREATE TABLE leases (
    host text COLLATE "C" NOT NULL, role text COLLATE "C" NOT NULL DEFAULT session_user,
    holder text COLLATE "C" NOT NULL,
    doing text COLLATE "C" NOT NULL, machine text COLLATE "C" NOT NULL, process integer NOT NULL,
    address text COLLATE "C", until timestamp with time zone NOT NULL,
    PRIMARY KEY (host, role)
);

-- The stems that FTS5 knows; as there, no word is left out.
CREATE TEXT SEARCH DICTIONARY stems (TEMPLATE = snowball, LANGUAGE = porter);
CREATE TEXT SEARCH CONFIGURATION stems (COPY = pg_catalog.simple);
ALTER TEXT SEARCH CONFIGURATION stems ALTER MAPPING REPLACE pg_catalog.simple WITH stems;
CREATE TABLE search_texts (
    skill_id integer PRIMARY KEY REFERENCES skills (id) ON DELETE CASCADE,
    head tsvector NOT NULL, body tsvector NOT NULL
);
CREATE INDEX ix_search_texts_head ON search_texts USING gin (head);
CREATE INDEX ix_search_texts_body ON search_texts USING gin (body);

ALTER TABLE sources ALTER owner SET DEFAULT session_user;
ALTER TABLE gone ALTER owner SET DEFAULT session_user;
ALTER TABLE revisions ALTER role SET DEFAULT session_user;
ALTER TABLE changes ALTER role SET DEFAULT session_user;
ALTER TABLE tokens ALTER role SET DEFAULT session_user;
ALTER TABLE audit ALTER role SET DEFAULT session_user;
ALTER TABLE audit ALTER at SET DEFAULT
    to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"');

CREATE FUNCTION registry_is_admin() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
DECLARE owning oid;
BEGIN
    SELECT relowner INTO owning FROM pg_class WHERE oid = CAST('sources' AS regclass);
    RETURN pg_has_role(session_user, owning, 'USAGE');
END$body$;

-- A member of a role counts as who it may become, and so is bound by its teams.
CREATE FUNCTION registry_sees_all() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM teams) THEN RETURN true; END IF;
    RETURN registry_is_admin() OR NOT EXISTS (
        SELECT 1 FROM teams t JOIN pg_catalog.pg_roles r ON r.rolname = t.role
        WHERE pg_has_role(session_user, r.oid, 'MEMBER')
    );
END$body$;

CREATE FUNCTION registry_teams() RETURNS text[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    RETURN ARRAY(
        SELECT t.team FROM teams t JOIN pg_catalog.pg_roles r ON r.rolname = t.role
        WHERE pg_has_role(session_user, r.oid, 'MEMBER')
    );
END$body$;

-- A policy would keep the index of words from being used: @@ might tell of what it looks at.
CREATE FUNCTION registry_find(place text, asked tsquery, most bigint) RETURNS SETOF integer
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
DECLARE mine text[];
BEGIN
    IF registry_sees_all() THEN
        IF place = 'head' THEN
            RETURN QUERY SELECT t.skill_id FROM search_texts t WHERE t.head @@ asked LIMIT most;
        ELSE
            RETURN QUERY SELECT t.skill_id FROM search_texts t WHERE t.body @@ asked LIMIT most;
        END IF;
    ELSE
        mine := registry_teams();
        IF place = 'head' THEN
            RETURN QUERY SELECT t.skill_id FROM search_texts t
            WHERE t.head @@ asked AND t.skill_id IN (
                SELECT s.id FROM skills s JOIN sources o ON o.id = s.source_id
                WHERE o.team IS NULL OR o.owner = session_user OR o.team = ANY (mine)
            ) LIMIT most;
        ELSE
            RETURN QUERY SELECT t.skill_id FROM search_texts t
            WHERE t.body @@ asked AND t.skill_id IN (
                SELECT s.id FROM skills s JOIN sources o ON o.id = s.source_id
                WHERE o.team IS NULL OR o.owner = session_user OR o.team = ANY (mine)
            ) LIMIT most;
        END IF;
    END IF;
END$body$;

-- The statistics are of all texts: a role that sees only some is told nothing.
CREATE FUNCTION registry_common_words() RETURNS TABLE (place text, word text, texts bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    IF registry_sees_all() THEN
        RETURN QUERY SELECT CAST(s.attname AS text), e.word, CAST(e.share * t.reltuples AS bigint)
        FROM pg_stats s JOIN pg_class t ON t.oid = CAST('search_texts' AS regclass),
            unnest(CAST(CAST(s.most_common_elems AS text) AS text[]), s.most_common_elem_freqs)
                AS e (word, share)
        WHERE s.schemaname = current_schema() AND s.tablename = 'search_texts'
            AND e.word IS NOT NULL;
    END IF;
END$body$;

CREATE FUNCTION registry_note(what text, subject text, detail json) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    INSERT INTO audit (what, subject, detail, host, tool, client)
    VALUES ($1, $2, CAST($3 AS text),
        nullif(current_setting('skill_registry.host', true), ''),
        nullif(current_setting('skill_registry.tool', true), ''),
        nullif(current_setting('skill_registry.client', true), ''));
END$body$;

CREATE FUNCTION registry_guard_source() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
DECLARE bound text;
BEGIN
    NEW.owner := coalesce(NEW.owner, session_user);
    IF TG_OP = 'INSERT' OR NEW.host <> OLD.host THEN
        INSERT INTO hosts VALUES (NEW.host, NEW.owner) ON CONFLICT DO NOTHING;
        SELECT role INTO bound FROM hosts WHERE host = NEW.host;
        IF bound <> NEW.owner AND NOT registry_is_admin() THEN
            RAISE EXCEPTION 'the host name % is used by the role %', NEW.host, bound
                USING ERRCODE = 'SR001',
                DETAIL = CAST(json_build_object('host', NEW.host, 'role', bound) AS text);
        END IF;
    ELSIF NEW.owner <> OLD.owner AND registry_is_admin() AND NOT EXISTS (
        SELECT 1 FROM sources WHERE host = NEW.host AND owner <> NEW.owner AND id <> NEW.id
    ) THEN
        UPDATE hosts SET role = NEW.owner WHERE host = NEW.host;
    END IF;
    IF NEW.team <> '' AND (TG_OP = 'INSERT' OR NEW.team IS DISTINCT FROM OLD.team)
            AND NOT (registry_sees_all() OR NEW.team = ANY (registry_teams())) THEN
        RAISE EXCEPTION 'this role is not of the team %', NEW.team USING ERRCODE = 'SR002';
    END IF;
    NEW.team := nullif(NEW.team, '');
    IF TG_OP = 'UPDATE' AND (NEW.team, NEW.owner) IS DISTINCT FROM (OLD.team, OLD.owner) THEN
        UPDATE gone SET team = NEW.team, owner = NEW.owner
        WHERE source = OLD.name AND owner = OLD.owner;
    END IF;
    RETURN NEW;
END$body$;

-- A uid says whose history it is: nobody may take another owner's.
CREATE FUNCTION registry_guard_uids() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    IF NOT registry_is_admin() AND EXISTS (SELECT 1 FROM added a WHERE EXISTS (
        SELECT 1 FROM skills s JOIN sources o ON o.id = s.source_id
        WHERE s.uid = a.uid AND o.owner <> session_user
    ) OR EXISTS (
        SELECT 1 FROM gone g WHERE g.uid = a.uid AND g.owner <> session_user
    ) OR EXISTS (
        SELECT 1 FROM revisions r WHERE r.uid = a.uid AND r.role <> session_user
        AND NOT EXISTS (SELECT 1 FROM skills s WHERE s.uid = r.uid AND s.id <> a.id)
        AND NOT EXISTS (SELECT 1 FROM gone g WHERE g.uid = r.uid)
    )) THEN
        RAISE EXCEPTION 'the history of a skill belongs to another role' USING ERRCODE = 'SR002';
    END IF;
    RETURN NULL;
END$body$;

CREATE FUNCTION registry_refuse() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    RAISE EXCEPTION '% of % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'SR003';
END$body$;

CREATE FUNCTION registry_use_contents() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    INSERT INTO content_uses SELECT DISTINCT e.value ->> 3, a.uid
    FROM added a, json_array_elements(CAST(a.files AS json)) e
    WHERE e.value ->> 3 IS NOT NULL ON CONFLICT DO NOTHING;
    RETURN NULL;
END$body$;

CREATE FUNCTION registry_tell_source() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
DECLARE told json;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        SELECT json_object_agg(n.key, json_build_array(o.value, n.value)) INTO told
        FROM jsonb_each(to_jsonb(OLD)) o JOIN jsonb_each(to_jsonb(NEW)) n ON n.key = o.key
        WHERE n.value <> o.value AND n.key IN (
            'name', 'path', 'scope', 'priority', 'enabled', 'host', 'project', 'kind', 'url', 'pin',
            'part', 'chosen', 'owner', 'team'
        );
        IF told IS NOT NULL THEN
            PERFORM registry_note('source changed', OLD.name, told);
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        PERFORM registry_note('source added', NEW.name,
            json_build_object('path', NEW.path, 'host', NEW.host, 'owner', NEW.owner));
    ELSE
        PERFORM registry_note('source removed', OLD.name,
            json_build_object('path', OLD.path, 'host', OLD.host, 'owner', OLD.owner));
    END IF;
    RETURN NULL;
END$body$;

CREATE FUNCTION registry_tell_trust() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
BEGIN
    PERFORM registry_note(
        CASE WHEN NEW.held = 0 THEN 'skill trusted' ELSE 'skill held back' END,
        (SELECT name FROM sources WHERE id = NEW.source_id) || '/' || NEW.folder, NULL);
    RETURN NULL;
END$body$;

CREATE FUNCTION registry_tell_prune() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
DECLARE told json;
BEGIN
    SELECT json_build_object('revisions', count(*), 'skills', count(DISTINCT uid)) INTO told
    FROM dropped HAVING count(*) > 0;
    IF told IS NOT NULL THEN
        PERFORM registry_note('history pruned', NULL, told);
    END IF;
    RETURN NULL;
END$body$;

CREATE FUNCTION registry_tell_token() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :schema, pg_temp AS $body$
DECLARE one tokens;
BEGIN
    IF TG_OP = 'INSERT' THEN one := NEW; ELSE one := OLD; END IF;
    PERFORM registry_note(
        CASE TG_OP WHEN 'INSERT' THEN 'token added' ELSE 'token removed' END, one.name,
        json_build_object('number', one.number, 'write', one.write,
            'personality', one.personality, 'source', one.source));
    RETURN NULL;
END$body$;

CREATE TRIGGER guard BEFORE INSERT OR UPDATE OF host, owner, team, name ON sources
    FOR EACH ROW EXECUTE FUNCTION registry_guard_source();
CREATE TRIGGER guard AFTER INSERT ON skills REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION registry_guard_uids();
CREATE TRIGGER keep BEFORE UPDATE OF uid ON skills
    FOR EACH ROW WHEN (OLD.uid <> NEW.uid) EXECUTE FUNCTION registry_refuse();
CREATE TRIGGER count BEFORE UPDATE ON data_version
    FOR EACH ROW WHEN (NEW.number <> OLD.number + 1) EXECUTE FUNCTION registry_refuse();
CREATE TRIGGER keep BEFORE UPDATE OR DELETE ON audit
    FOR EACH ROW EXECUTE FUNCTION registry_refuse();
CREATE TRIGGER keep_all BEFORE TRUNCATE ON audit
    FOR EACH STATEMENT EXECUTE FUNCTION registry_refuse();
CREATE TRIGGER uses AFTER INSERT ON revisions REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION registry_use_contents();
CREATE TRIGGER tell AFTER INSERT OR DELETE OR
    UPDATE OF name, path, scope, priority, host, project, kind, url, pin, part, chosen, owner, team
    ON sources
    FOR EACH ROW EXECUTE FUNCTION registry_tell_source();
CREATE TRIGGER tell AFTER UPDATE OF held ON skills
    FOR EACH ROW WHEN (OLD.held <> NEW.held) EXECUTE FUNCTION registry_tell_trust();
CREATE TRIGGER tell AFTER DELETE ON revisions REFERENCING OLD TABLE AS dropped
    FOR EACH STATEMENT EXECUTE FUNCTION registry_tell_prune();
CREATE TRIGGER tell AFTER INSERT OR DELETE ON tokens
    FOR EACH ROW EXECUTE FUNCTION registry_tell_token();

-- Nobody else may call these, and the views show no more than who asks may see.
DO $$ DECLARE one regprocedure; name text; BEGIN
    FOR one IN SELECT oid FROM pg_proc WHERE proname LIKE 'registry\_%'
            AND pronamespace = CAST(quote_ident(current_schema()) AS regnamespace) LOOP
        EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', one);
    END LOOP;
    IF CAST(current_setting('server_version_num') AS integer) >= 150000 THEN
        FOREACH name IN ARRAY ARRAY['skill', 'skill_tag', 'revision', 'usage_by_day'] LOOP
            EXECUTE format('ALTER VIEW %I SET (security_invoker = true)', name);
        END LOOP;
    END IF;
END $$;
