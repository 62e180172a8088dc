CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE sources (
    id INTEGER NOT NULL CONSTRAINT pk_sources PRIMARY KEY,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    scope TEXT NOT NULL,
    priority INTEGER NOT NULL DEFAULT 0,
    strength INTEGER NOT NULL,
    enabled INTEGER NOT NULL DEFAULT 1,
    added_at TEXT NOT NULL,
    last_sync_at TEXT,
    last_result TEXT,
    host TEXT NOT NULL DEFAULT '',
    project TEXT,
    kind TEXT,
    url TEXT,
    pin TEXT,
    part TEXT,
    chosen TEXT,
    version TEXT,
    fetched_at TEXT,
    owner TEXT,
    team TEXT, precedence INTEGER DEFAULT '0' NOT NULL, review BIGINT DEFAULT 0 NOT NULL,
    CONSTRAINT uq_sources_host_path UNIQUE (host, path),
    CONSTRAINT uq_sources_name UNIQUE (name)
);
CREATE TABLE skills (
    id INTEGER NOT NULL CONSTRAINT pk_skills PRIMARY KEY,
    uid TEXT NOT NULL,
    live INTEGER NOT NULL,
    replaces INTEGER,
    source_id INTEGER NOT NULL,
    folder TEXT NOT NULL,
    position TEXT NOT NULL,
    ref TEXT NOT NULL DEFAULT '',
    shadowed INTEGER NOT NULL DEFAULT 0,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    description TEXT NOT NULL,
    kind TEXT,
    category TEXT,
    version TEXT,
    license TEXT,
    author TEXT,
    compatibility TEXT,
    tags TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    indexed_at TEXT NOT NULL,
    content_hash TEXT,
    tree_hash TEXT,
    document TEXT,
    bytes BIGINT NOT NULL,
    file_count INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    racy INTEGER NOT NULL,
    status TEXT NOT NULL,
    hidden INTEGER NOT NULL DEFAULT 0,
    required_tools TEXT NOT NULL DEFAULT '[]',
    parameters TEXT NOT NULL DEFAULT '[]',
    copies TEXT NOT NULL DEFAULT '',
    bare INTEGER NOT NULL DEFAULT '0',
    held INTEGER NOT NULL DEFAULT '0', installed TEXT, needs TEXT,
    CONSTRAINT fk_skills_source_id FOREIGN KEY (source_id) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX uq_skills_live_folder ON skills (source_id, folder) WHERE live = 1;
CREATE INDEX ix_skills_listing ON skills (name_key, name, source_id, position) WHERE live = 1;
CREATE INDEX ix_skills_position ON skills (source_id, position) WHERE live = 1;
CREATE INDEX ix_skills_unseen ON skills (source_id) WHERE live = 0;
CREATE INDEX ix_skills_name ON skills (name);
CREATE INDEX ix_skills_ref ON skills (ref);
CREATE INDEX ix_skills_uid ON skills (uid);
CREATE TABLE documents (
    skill_id INTEGER NOT NULL CONSTRAINT pk_documents PRIMARY KEY,
    text TEXT NOT NULL,
    body_start INTEGER NOT NULL,
    front_matter TEXT NOT NULL,
    "indexed" INTEGER NOT NULL,
    CONSTRAINT fk_documents_skill_id FOREIGN KEY (skill_id) REFERENCES skills (id) ON DELETE CASCADE
);
CREATE TABLE sketches (
    skill_id INTEGER NOT NULL CONSTRAINT pk_sketches PRIMARY KEY,
    data BLOB NOT NULL, vector BLOB,
    CONSTRAINT fk_sketches_skill_id_skills FOREIGN KEY (skill_id) REFERENCES skills (id) ON DELETE CASCADE
);
CREATE TABLE skill_files (
    skill_id INTEGER NOT NULL,
    path TEXT NOT NULL,
    mode INTEGER NOT NULL,
    size BIGINT NOT NULL,
    mtime_ns BIGINT NOT NULL,
    ctime_ns BIGINT NOT NULL,
    inode BIGINT NOT NULL,
    hash TEXT,
    CONSTRAINT pk_skill_files PRIMARY KEY (skill_id, path),
    CONSTRAINT fk_skill_files_skill_id FOREIGN KEY (skill_id) REFERENCES skills (id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE TABLE skill_tags (
    tag TEXT NOT NULL,
    skill_id INTEGER NOT NULL,
    CONSTRAINT pk_skill_tags PRIMARY KEY (tag, skill_id),
    CONSTRAINT fk_skill_tags_skill_id FOREIGN KEY (skill_id) REFERENCES skills (id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX ix_skill_tags_skill_id ON skill_tags (skill_id);
CREATE TABLE diagnostics (
    id INTEGER NOT NULL CONSTRAINT pk_diagnostics PRIMARY KEY,
    source_id INTEGER NOT NULL,
    skill_id INTEGER,
    folder TEXT NOT NULL,
    code TEXT NOT NULL,
    severity TEXT NOT NULL,
    message TEXT NOT NULL,
    path TEXT,
    line INTEGER,
    fix TEXT,
    CONSTRAINT fk_diagnostics_skill_id FOREIGN KEY (skill_id) REFERENCES skills (id) ON DELETE CASCADE,
    CONSTRAINT fk_diagnostics_source_id FOREIGN KEY (source_id) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE INDEX ix_diagnostics_skill_id ON diagnostics (skill_id);
CREATE INDEX ix_diagnostics_source_id ON diagnostics (source_id);
CREATE TABLE journal (
    id TEXT NOT NULL CONSTRAINT pk_journal PRIMARY KEY,
    host TEXT NOT NULL,
    source_id INTEGER NOT NULL,
    root TEXT NOT NULL,
    kind TEXT NOT NULL,
    folder TEXT NOT NULL,
    target TEXT NOT NULL,
    staged TEXT NOT NULL,
    base TEXT,
    new TEXT,
    exchange INTEGER NOT NULL,
    uid TEXT,
    created_at TEXT,
    started_at TEXT NOT NULL,
    CONSTRAINT fk_journal_source_id FOREIGN KEY (source_id) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE TABLE usage (
    uid TEXT NOT NULL CONSTRAINT pk_usage PRIMARY KEY,
    listed BIGINT NOT NULL,
    found BIGINT NOT NULL,
    read BIGINT NOT NULL,
    last_listed_at TEXT,
    last_found_at TEXT,
    last_read_at TEXT
);
CREATE TABLE usage_days (
    day TEXT NOT NULL,
    uid TEXT NOT NULL,
    listed BIGINT NOT NULL,
    found BIGINT NOT NULL,
    read BIGINT NOT NULL,
    CONSTRAINT pk_usage_days PRIMARY KEY (day, uid)
) WITHOUT ROWID;
CREATE TABLE contents (
    hash TEXT NOT NULL CONSTRAINT pk_contents PRIMARY KEY,
    size BIGINT NOT NULL,
    packed INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE TABLE revisions (
    id INTEGER NOT NULL CONSTRAINT pk_revisions PRIMARY KEY,
    uid TEXT NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    document TEXT,
    content_hash TEXT,
    tree_hash TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    files TEXT NOT NULL,
    origin TEXT,
    turn INTEGER,
    role TEXT,
    host TEXT,
    tool TEXT,
    client TEXT,
    CONSTRAINT uq_revisions_uid_number UNIQUE (uid, number),
    CONSTRAINT uq_revisions_uid_tree_hash UNIQUE (uid, tree_hash)
);
CREATE TABLE gone (
    uid TEXT NOT NULL CONSTRAINT pk_gone PRIMARY KEY,
    name TEXT NOT NULL,
    source TEXT NOT NULL,
    folder TEXT NOT NULL,
    created_at TEXT NOT NULL,
    since TEXT NOT NULL,
    tree_hash TEXT,
    trash TEXT,
    owner TEXT,
    team TEXT
);
CREATE INDEX ix_gone_name ON gone (name);
CREATE TABLE changes (
    id INTEGER NOT NULL CONSTRAINT pk_changes PRIMARY KEY,
    number TEXT NOT NULL,
    host TEXT NOT NULL,
    kind TEXT NOT NULL,
    uid TEXT NOT NULL,
    name TEXT NOT NULL,
    source TEXT NOT NULL,
    folder TEXT NOT NULL,
    "before" TEXT,
    "after" TEXT,
    made_at TEXT NOT NULL,
    signature TEXT NOT NULL,
    role TEXT,
    tool TEXT,
    client TEXT, command TEXT,
    CONSTRAINT uq_changes_number UNIQUE (number)
);
CREATE INDEX ix_changes_uid ON changes (uid);
CREATE TABLE tokens (
    number TEXT NOT NULL CONSTRAINT pk_tokens PRIMARY KEY,
    hash TEXT NOT NULL,
    name TEXT NOT NULL,
    personality TEXT,
    source TEXT,
    write INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    used_at TEXT,
    signature TEXT NOT NULL,
    role TEXT, publish INTEGER DEFAULT 0 NOT NULL, approve INTEGER DEFAULT 0 NOT NULL,
    CONSTRAINT uq_tokens_hash UNIQUE (hash)
);
CREATE TABLE audit (
    id INTEGER NOT NULL CONSTRAINT pk_audit PRIMARY KEY,
    at TEXT NOT NULL,
    role TEXT,
    host TEXT,
    tool TEXT,
    client TEXT,
    what TEXT NOT NULL,
    subject TEXT,
    detail TEXT
);
CREATE VIEW skill_tag AS
SELECT s.ref, s.name, t.tag FROM skills s JOIN skill_tags t ON t.skill_id = s.id
WHERE s.live = 1 AND s.status <> 'no_document';
CREATE VIEW revision AS
SELECT s.ref AS skill, r.number, r.name, r.seen_at,
    CASE r.number WHEN 1 THEN 'added' ELSE 'updated' END AS what,
    CASE WHEN s.tree_hash = r.tree_hash THEN 1 ELSE 0 END = 1 AS current,
    r.document, r.content_hash, r.tree_hash, r.uid
FROM revisions r LEFT JOIN skills s ON s.uid = r.uid AND s.live = 1 AND s.status <> 'no_document';
CREATE VIEW usage_by_day AS
SELECT d.day, s.ref AS skill, d.listed, d.found, d.read, d.uid
FROM usage_days d LEFT JOIN skills s ON s.uid = d.uid AND s.live = 1 AND s.status <> 'no_document';
CREATE VIRTUAL TABLE search_heads USING fts5(name, tags, description, content='', tokenize='porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE search_bodies USING fts5(body, content='', tokenize='porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE search_words USING fts5vocab(search_heads, 'row');
CREATE INDEX ix_skills_installed ON skills (source_id) WHERE installed IS NOT NULL;
CREATE VIEW finding AS 
SELECT CASE WHEN s.status <> 'no_document' THEN s.ref END AS skill, src.name AS source, d.folder,
    d.severity, d.code, d.path, d.line, d.message, d.fix
FROM diagnostics d JOIN sources src ON src.id = d.source_id LEFT JOIN skills s ON s.id = d.skill_id
WHERE d.skill_id IS NULL OR s.live = 1;
CREATE VIEW skill AS 
SELECT s.ref, s.name, s.description, s.kind, s.category,
    CASE s.tags WHEN '' THEN '[]' ELSE '["' || replace(replace(replace(
        s.tags, '\', '\\'), '"', '\"'), '
', '","') || '"]' END AS tags,
    src.scope, src.name AS source,
    CASE s.folder WHEN '.' THEN src.path ELSE src.path || '/' || s.folder END AS path,
    s.version, s.license, s.author, s.created_at, s.updated_at, s.content_hash, s.tree_hash,
    s.status, s.shadowed = 1 AS shadowed, s.hidden = 1 AS hidden, s.folder, src.host, src.project,
    CASE WHEN src.url IS NULL THEN nullif(substr(s.installed, 1, instr(s.installed, char(10)) - 1), '') ELSE src.url END AS origin_url, CASE WHEN src.url IS NULL THEN nullif(substr(substr(s.installed, instr(s.installed, char(10)) + 1), 1, instr(substr(s.installed, instr(s.installed, char(10)) + 1), char(10)) - 1), '') ELSE src.pin END AS origin_ref, CASE WHEN src.url IS NULL THEN nullif(substr(substr(substr(s.installed, instr(s.installed, char(10)) + 1), instr(substr(s.installed, instr(s.installed, char(10)) + 1), char(10)) + 1), 1, instr(substr(substr(s.installed, instr(s.installed, char(10)) + 1), instr(substr(s.installed, instr(s.installed, char(10)) + 1), char(10)) + 1), char(10)) - 1), '') ELSE src.version END AS origin_commit,
    s.held = 1 AS held, s.file_count, s.bytes,
    coalesce(u.listed, 0) AS listed, coalesce(u.found, 0) AS found, coalesce(u.read, 0) AS read,
    u.last_read_at, s.uid
FROM skills s JOIN sources src ON src.id = s.source_id LEFT JOIN usage u ON u.uid = s.uid
WHERE s.live = 1 AND s.status <> 'no_document';
CREATE INDEX ix_skills_updated ON skills (updated_at DESC, name_key, source_id, position) WHERE live = 1;
CREATE INDEX ix_diagnostics_code ON diagnostics (code, severity, skill_id);
CREATE TABLE proposals (
	id TEXT NOT NULL, 
	source_id INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT NOT NULL, 
	folder TEXT NOT NULL, 
	uid TEXT, 
	base TEXT, 
	tree_hash TEXT NOT NULL, 
	author TEXT NOT NULL, 
	token TEXT, 
	created_at TEXT NOT NULL, 
	archive BLOB, 
	state TEXT NOT NULL, 
	decided_by TEXT, 
	decided_at TEXT, 
	reason TEXT, 
	role TEXT, 
	CONSTRAINT pk_proposals PRIMARY KEY (id), 
	CONSTRAINT fk_proposals_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE INDEX ix_proposals_source_id ON proposals (source_id);
CREATE VIEW source AS 
SELECT src.name, src.scope, src.priority, src.enabled > 0 AS enabled,
    (SELECT count(*) FROM skills s WHERE s.source_id = src.id AND s.live = 1
        AND s.status <> 'no_document') AS skills,
    (SELECT count(*) FROM skills s WHERE s.source_id = src.id AND s.live = 1 AND s.held = 1)
        AS held,
    src.path, src.host, src.project, src.owner, src.team, src.precedence, src.added_at,
    src.last_sync_at, src.last_result, src.kind AS remote_kind, src.url AS remote_url,
    src.pin AS remote_ref, src.part AS remote_part, src.version AS remote_version,
    src.fetched_at, src.review > 0 AS review
FROM sources src;
CREATE TABLE labels (
	id INTEGER NOT NULL, 
	uid TEXT NOT NULL, 
	label TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	tree_hash TEXT NOT NULL, 
	state TEXT NOT NULL, 
	at TEXT NOT NULL, 
	reason TEXT, 
	replacement TEXT, 
	role TEXT, 
	host TEXT, 
	tool TEXT, 
	client TEXT, 
	CONSTRAINT pk_labels PRIMARY KEY (id), 
	CONSTRAINT uq_labels_uid_label_number UNIQUE (uid, label, number)
);
CREATE INDEX ix_labels_tree_hash ON labels (tree_hash);
CREATE TABLE entries (
	id INTEGER NOT NULL, 
	uid TEXT NOT NULL, 
	name TEXT NOT NULL, 
	source TEXT NOT NULL, 
	owner TEXT, 
	slot INTEGER NOT NULL, 
	base BIGINT NOT NULL, 
	number BIGINT NOT NULL, 
	CONSTRAINT pk_entries PRIMARY KEY (id), 
	CONSTRAINT uq_entries_uid_name UNIQUE (uid, name)
);
CREATE INDEX ix_entries_name ON entries (name);
CREATE INDEX ix_skills_category ON skills (lower(category)) WHERE live = 1;
CREATE INDEX ix_skills_kind ON skills (lower(kind)) WHERE live = 1;
CREATE INDEX ix_skills_created ON skills (created_at DESC, name_key, source_id, position) WHERE live = 1;
CREATE INDEX ix_skills_counted ON skills (bytes, source_id, status, held, shadowed, hidden, name, uid, kind, category, created_at, updated_at, file_count, live) WHERE live = 1;
INSERT INTO alembic_version VALUES ('0033');
