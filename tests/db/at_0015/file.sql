CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE skills (
	id INTEGER NOT NULL,
	uid TEXT NOT NULL,
	live INTEGER NOT NULL,
	replaces INTEGER,
	source_id INTEGER NOT NULL,
	folder TEXT NOT NULL,
	position TEXT NOT NULL,
	ref TEXT DEFAULT '' NOT NULL,
	shadowed INTEGER DEFAULT 0 NOT NULL,
	name TEXT NOT NULL,
	name_key TEXT NOT NULL,
	description TEXT NOT NULL,
	kind TEXT,
	category TEXT,
	version TEXT,
	license TEXT,
	author TEXT,
	compatibility TEXT,
	tags TEXT DEFAULT '' NOT NULL,
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
	hidden INTEGER DEFAULT 0 NOT NULL,
	required_tools TEXT DEFAULT '[]' NOT NULL,
	parameters TEXT DEFAULT '[]' NOT NULL, copies TEXT DEFAULT '' NOT NULL, bare INTEGER DEFAULT '0' NOT NULL, held INTEGER DEFAULT '0' NOT NULL,
	CONSTRAINT pk_skills PRIMARY KEY (id),
	CONSTRAINT fk_skills_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE TABLE diagnostics (
	id INTEGER NOT NULL,
	source_id INTEGER NOT NULL,
	skill_id INTEGER,
	folder TEXT NOT NULL,
	code TEXT NOT NULL,
	severity TEXT NOT NULL,
	message TEXT NOT NULL,
	path TEXT,
	line INTEGER,
	fix TEXT,
	CONSTRAINT pk_diagnostics PRIMARY KEY (id),
	CONSTRAINT fk_diagnostics_skill_id FOREIGN KEY(skill_id) REFERENCES skills (id) ON DELETE CASCADE,
	CONSTRAINT fk_diagnostics_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE TABLE documents (
	skill_id INTEGER NOT NULL,
	text TEXT NOT NULL,
	body_start INTEGER NOT NULL,
	front_matter TEXT NOT NULL,
	"indexed" INTEGER NOT NULL,
	CONSTRAINT pk_documents PRIMARY KEY (skill_id),
	CONSTRAINT fk_documents_skill_id FOREIGN KEY(skill_id) REFERENCES skills (id) ON DELETE CASCADE
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
	CONSTRAINT fk_skill_files_skill_id FOREIGN KEY(skill_id) REFERENCES skills (id) ON DELETE CASCADE
)
 WITHOUT ROWID;
CREATE TABLE skill_tags (
	tag TEXT NOT NULL,
	skill_id INTEGER NOT NULL,
	CONSTRAINT pk_skill_tags PRIMARY KEY (tag, skill_id),
	CONSTRAINT fk_skill_tags_skill_id FOREIGN KEY(skill_id) REFERENCES skills (id) ON DELETE CASCADE
)
 WITHOUT ROWID;
CREATE TABLE journal (
	id TEXT NOT NULL,
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
	CONSTRAINT pk_journal PRIMARY KEY (id),
	CONSTRAINT fk_journal_source_id FOREIGN KEY(source_id) REFERENCES sources (id) ON DELETE CASCADE
);
CREATE TABLE usage (
	uid TEXT NOT NULL,
	listed BIGINT NOT NULL,
	found BIGINT NOT NULL,
	read BIGINT NOT NULL,
	last_listed_at TEXT,
	last_found_at TEXT,
	last_read_at TEXT,
	CONSTRAINT pk_usage PRIMARY KEY (uid)
);
CREATE TABLE contents (
	hash TEXT NOT NULL,
	size BIGINT NOT NULL,
	packed INTEGER NOT NULL,
	data BLOB NOT NULL,
	CONSTRAINT pk_contents PRIMARY KEY (hash)
);
CREATE TABLE revisions (
	id INTEGER NOT NULL,
	uid TEXT NOT NULL,
	number INTEGER NOT NULL,
	name TEXT NOT NULL,
	document TEXT,
	content_hash TEXT,
	tree_hash TEXT NOT NULL,
	seen_at TEXT NOT NULL,
	files TEXT NOT NULL, origin TEXT, turn INTEGER, role TEXT, host TEXT, tool TEXT, client TEXT,
	CONSTRAINT pk_revisions PRIMARY KEY (id),
	CONSTRAINT uq_revisions_uid_number UNIQUE (uid, number),
	CONSTRAINT uq_revisions_uid_tree_hash UNIQUE (uid, tree_hash)
);
CREATE TABLE "sources" (
	id INTEGER NOT NULL,
	name TEXT NOT NULL,
	path TEXT NOT NULL,
	scope TEXT NOT NULL,
	priority INTEGER DEFAULT 0 NOT NULL,
	strength INTEGER NOT NULL,
	enabled INTEGER DEFAULT 1 NOT NULL,
	added_at TEXT NOT NULL,
	last_sync_at TEXT,
	last_result TEXT,
	host TEXT DEFAULT '' NOT NULL, project TEXT, kind TEXT, url TEXT, pin TEXT, part TEXT, chosen TEXT, version TEXT, fetched_at TEXT, owner TEXT, team TEXT,
	CONSTRAINT pk_sources PRIMARY KEY (id),
	CONSTRAINT uq_sources_name UNIQUE (name),
	CONSTRAINT uq_sources_host_path UNIQUE (host, path)
);
CREATE TABLE gone (
	uid TEXT NOT NULL,
	name TEXT NOT NULL,
	source TEXT NOT NULL,
	folder TEXT NOT NULL,
	created_at TEXT NOT NULL,
	since TEXT NOT NULL,
	tree_hash TEXT,
	trash TEXT, owner TEXT, team TEXT,
	CONSTRAINT pk_gone PRIMARY KEY (uid)
);
CREATE TABLE changes (
	id INTEGER NOT NULL,
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
	signature TEXT NOT NULL, role TEXT, tool TEXT, client TEXT,
	CONSTRAINT pk_changes PRIMARY KEY (id),
	CONSTRAINT uq_changes_number UNIQUE (number)
);
CREATE TABLE usage_days (
	day TEXT NOT NULL,
	uid TEXT NOT NULL,
	listed BIGINT NOT NULL,
	found BIGINT NOT NULL,
	read BIGINT NOT NULL,
	CONSTRAINT pk_usage_days PRIMARY KEY (day, uid)
)
 WITHOUT ROWID;
CREATE VIRTUAL TABLE search_heads USING fts5(name, tags, description, content='', tokenize='porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE search_bodies USING fts5(body, content='', tokenize='porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE search_words USING fts5vocab(search_heads, 'row');
CREATE TABLE sketches (
	skill_id INTEGER NOT NULL,
	data BLOB NOT NULL,
	CONSTRAINT pk_sketches PRIMARY KEY (skill_id),
	CONSTRAINT fk_sketches_skill_id_skills FOREIGN KEY(skill_id) REFERENCES skills (id) ON DELETE CASCADE
);
CREATE TABLE tokens (
	number TEXT NOT NULL,
	hash TEXT NOT NULL,
	name TEXT NOT NULL,
	personality TEXT,
	source TEXT,
	write INTEGER NOT NULL,
	created_at TEXT NOT NULL,
	expires_at TEXT,
	used_at TEXT,
	signature TEXT NOT NULL, role TEXT,
	CONSTRAINT pk_tokens PRIMARY KEY (number),
	CONSTRAINT uq_tokens_hash UNIQUE (hash)
);
CREATE TABLE audit (
	id INTEGER NOT NULL,
	at TEXT NOT NULL,
	role TEXT,
	host TEXT,
	tool TEXT,
	client TEXT,
	what TEXT NOT NULL,
	subject TEXT,
	detail TEXT,
	CONSTRAINT pk_audit PRIMARY KEY (id)
);
INSERT INTO alembic_version VALUES('0015');
INSERT INTO skills VALUES(1,'abf96e6d0d5845e3',1,NULL,1,'broken','broken','broken',0,'broken','broken','No description.',NULL,NULL,NULL,NULL,NULL,NULL,'','2026-11-23T20:09:50Z','2026-11-23T20:09:50Z','2026-11-23T20:09:50Z','sha256:cb84210f9653c71cd58e10c56864048aac07e2d71ac463700afea3d8df702996','sha256:d69467aea517a75e9e35033fb06c6fd0ba64d172c19fb1f85fbcc370b4b9ea8f','SKILL.md',38,1,'5:ed83106f2c4783bca0b5eea668d05833',1,'warning',0,'[]','[]','',1,0);
INSERT INTO skills VALUES(4,'ab83db8567dbf0a1',1,NULL,1,'tents','tents','tents',0,'tents','tents','Pitches tents.',NULL,NULL,NULL,NULL,NULL,NULL,'','2023-11-14T22:13:20Z','2023-11-14T22:13:20Z','2026-11-23T20:09:50Z','sha256:3e7779b8046b27cd6c40c93357cfa245aa5735dec04fa51878fe0d116670fa61','sha256:16a0822c9560fe3668da7f429df3384339b55d332dde1e0b47cfefe0731a5e26','SKILL.md',75,1,'5:ed62e99569d55cad9b6a9233d0fae2bf',1,'ok',0,'[]','[]','',1,0);
INSERT INTO skills VALUES(6,'fbb997957fb8b4e1',1,5,1,'knots','knots','knots',0,'knots','knots','Ties ropes and lines.',NULL,NULL,NULL,NULL,NULL,NULL,'rope
sailing','2023-11-14T22:13:20Z','2026-11-23T20:09:51Z','2026-11-23T20:09:51Z','sha256:87d80d72bc1106e9c0769df72ec9bbbf8692b802383a8c81134502299dadcbd8','sha256:4e19fd1a039065afb17664edc22925f1ae65911bbfb2df857dead000652c6fbc','SKILL.md',117,2,'5:fa8a78a3b2ad8fd0c54a3f21cf1b9f19',1,'warning',0,'[]','[]','',1,0);
INSERT INTO diagnostics VALUES(1,1,1,'broken','description-from-body','warning','the skill has no description; the first words of its text are taken','SKILL.md',2,'add `description:` with what the skill does and when to use it');
INSERT INTO diagnostics VALUES(4,1,6,'knots','key-unknown','warning','`tags` is not a key of the specification','SKILL.md',4,'move it below `metadata` as text, or remove it (known are name, description, license, compatibility, metadata, allowed-tools)');
INSERT INTO documents VALUES(1,'---
name: broken
---

No description.
',21,'{"name":"broken"}',1);
INSERT INTO documents VALUES(4,'---
name: tents
description: Pitches tents.
---

# Tents

Hammer the pegs.
',48,'{"name":"tents","description":"Pitches tents."}',1);
INSERT INTO documents VALUES(6,'---
name: knots
description: Ties ropes and lines.
tags: [rope, sailing]
---

# How

First the bowline.
',77,'{"name":"knots","description":"Ties ropes and lines.","tags":["rope","sailing"]}',1);
INSERT INTO skill_files VALUES(1,'SKILL.md',33188,38,1795464590520015787,1795464590520015787,2188778,'sha256:cb84210f9653c71cd58e10c56864048aac07e2d71ac463700afea3d8df702996');
INSERT INTO skill_files VALUES(4,'SKILL.md',33188,75,1700000000000000000,1795464590519932643,2180304,'sha256:3e7779b8046b27cd6c40c93357cfa245aa5735dec04fa51878fe0d116670fa61');
INSERT INTO skill_files VALUES(6,'SKILL.md',33188,104,1795464591099330571,1795464591103565921,2265251,'sha256:87d80d72bc1106e9c0769df72ec9bbbf8692b802383a8c81134502299dadcbd8');
INSERT INTO skill_files VALUES(6,'run.sh',33188,13,1795464590519773887,1795464590519773887,2172388,'sha256:93d310dddd1c5ffa8169a09dcd6c76051ff5ac7b0bcb5f4a447ed43b42fe00f9');
INSERT INTO skill_tags VALUES('rope',6);
INSERT INTO skill_tags VALUES('sailing',6);
INSERT INTO usage VALUES('fbb997957fb8b4e1',0,0,2,NULL,NULL,'2026-11-23T20:09:51Z');
INSERT INTO contents VALUES('sha256:93d310dddd1c5ffa8169a09dcd6c76051ff5ac7b0bcb5f4a447ed43b42fe00f9',13,0,X'6563686F20626F776C696E650A');
INSERT INTO contents VALUES('sha256:56675c0b3f94cb9b7022cf26f6d4305d7e427d707b42198e8f50dc006f1b1018',89,0,X'2D2D2D0A6E616D653A206B6E6F74730A6465736372697074696F6E3A205469657320726F7065732E0A746167733A205B726F70652C207361696C696E675D0A2D2D2D0A0A2320486F770A0A5374657020627920737465702E0A');
INSERT INTO contents VALUES('sha256:a800a0b1b3dbe3aefe9fdd12ab0328fca8c828a49be84b41affea60ab8756a6c',99,1,X'7801158C310A80301004FB7BC582ADC903F2027BEDC422EA110EF512BC80F87B633303538C738E345E1C7068AE463BDB764BA99235601236DCB93446DD718AB279AA3159C0FCF71E16A5E5B4906B23EA30E48768AC5CB0BEB0664F1F72C11FE7');
INSERT INTO contents VALUES('sha256:7a2dbac87097d436030041da5f7700e3bbac50cdc826336c189d9e82f058f6c4',67,0,X'2D2D2D0A6E616D653A20736F75700A6465736372697074696F6E3A20436F6F6B73206C65656B732E0A2D2D2D0A0A2320536F75700A0A5374697220736C6F776C792E0A');
INSERT INTO revisions VALUES(1,'abf96e6d0d5845e3',1,'broken','SKILL.md','sha256:cb84210f9653c71cd58e10c56864048aac07e2d71ac463700afea3d8df702996','sha256:d69467aea517a75e9e35033fb06c6fd0ba64d172c19fb1f85fbcc370b4b9ea8f','2026-11-23T20:09:50Z','[["SKILL.md",0,38,"sha256:cb84210f9653c71cd58e10c56864048aac07e2d71ac463700afea3d8df702996"]]',NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO revisions VALUES(2,'fbb997957fb8b4e1',1,'knots','SKILL.md','sha256:56675c0b3f94cb9b7022cf26f6d4305d7e427d707b42198e8f50dc006f1b1018','sha256:211b8fe11aa43cc4820756513d543e64ef1c6c759ccb97307158f66bbac02f15','2026-11-23T20:09:50Z','[["SKILL.md",0,89,"sha256:56675c0b3f94cb9b7022cf26f6d4305d7e427d707b42198e8f50dc006f1b1018"],["run.sh",0,13,"sha256:93d310dddd1c5ffa8169a09dcd6c76051ff5ac7b0bcb5f4a447ed43b42fe00f9"]]',NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO revisions VALUES(3,'708513e651ea179c',1,'soup','SKILL.md','sha256:7a2dbac87097d436030041da5f7700e3bbac50cdc826336c189d9e82f058f6c4','sha256:933c7a5ddad335c5017d934623ca0cdbd6901eca6a95c697e0ea5e864cdc87e8','2026-11-23T20:09:50Z','[["SKILL.md",0,67,"sha256:7a2dbac87097d436030041da5f7700e3bbac50cdc826336c189d9e82f058f6c4"]]',NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO revisions VALUES(4,'ab83db8567dbf0a1',1,'tents','SKILL.md','sha256:3e7779b8046b27cd6c40c93357cfa245aa5735dec04fa51878fe0d116670fa61','sha256:16a0822c9560fe3668da7f429df3384339b55d332dde1e0b47cfefe0731a5e26','2026-11-23T20:09:50Z','[["SKILL.md",0,75,"sha256:3e7779b8046b27cd6c40c93357cfa245aa5735dec04fa51878fe0d116670fa61"]]',NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO revisions VALUES(5,'fbb997957fb8b4e1',2,'knots','SKILL.md','sha256:a800a0b1b3dbe3aefe9fdd12ab0328fca8c828a49be84b41affea60ab8756a6c','sha256:042dade486f04b3bc655f5416254c042dd7238913cc6453c8694b254d0b655f4','2026-11-23T20:09:51Z','[["SKILL.md",0,99,"sha256:a800a0b1b3dbe3aefe9fdd12ab0328fca8c828a49be84b41affea60ab8756a6c"],["run.sh",0,13,"sha256:93d310dddd1c5ffa8169a09dcd6c76051ff5ac7b0bcb5f4a447ed43b42fe00f9"]]',NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO revisions VALUES(6,'fbb997957fb8b4e1',3,'knots','SKILL.md','sha256:87d80d72bc1106e9c0769df72ec9bbbf8692b802383a8c81134502299dadcbd8','sha256:4e19fd1a039065afb17664edc22925f1ae65911bbfb2df857dead000652c6fbc','2026-11-23T20:09:51Z','[["SKILL.md",0,104,"sha256:87d80d72bc1106e9c0769df72ec9bbbf8692b802383a8c81134502299dadcbd8"],["run.sh",0,13,"sha256:93d310dddd1c5ffa8169a09dcd6c76051ff5ac7b0bcb5f4a447ed43b42fe00f9"]]',NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO sources VALUES(1,'mine','/home/ann/skills','personal',0,4000000,1,'2026-11-23T20:09:50Z','2026-11-23T20:09:51Z','ok','',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO gone VALUES('708513e651ea179c','soup','mine','soup','2023-11-14T22:13:20Z','2026-11-23T20:09:51Z','sha256:933c7a5ddad335c5017d934623ca0cdbd6901eca6a95c697e0ea5e864cdc87e8','deeee1d2f61b6402',NULL,NULL);
INSERT INTO changes VALUES(1,'ccc12c331609820b','','update','fbb997957fb8b4e1','knots','mine','knots','sha256:211b8fe11aa43cc4820756513d543e64ef1c6c759ccb97307158f66bbac02f15','sha256:042dade486f04b3bc655f5416254c042dd7238913cc6453c8694b254d0b655f4','2026-11-23T20:09:51Z','c116eb9f4f02551938189980c8f93cc91c407a3c1c3ce3664beab4c9eea76c29',NULL,NULL,NULL);
INSERT INTO changes VALUES(2,'97706755ed0d00b4','','update','fbb997957fb8b4e1','knots','mine','knots','sha256:042dade486f04b3bc655f5416254c042dd7238913cc6453c8694b254d0b655f4','sha256:4e19fd1a039065afb17664edc22925f1ae65911bbfb2df857dead000652c6fbc','2026-11-23T20:09:51Z','7db00fefd5769a9b18a0c1b826b2d3c2f348a1251ba3a8f960ce1faef4790267',NULL,NULL,NULL);
INSERT INTO changes VALUES(3,'deeee1d2f61b6402','','delete','708513e651ea179c','soup','mine','soup','sha256:933c7a5ddad335c5017d934623ca0cdbd6901eca6a95c697e0ea5e864cdc87e8',NULL,'2026-11-23T20:09:51Z','1a60e9b57d76dd307f36895303b4be93227ed70821470fa5c477b8dfefc4ea04',NULL,NULL,NULL);
INSERT INTO usage_days VALUES('2026-11-23','fbb997957fb8b4e1',0,0,2);
DELETE FROM "search_heads_data";
INSERT INTO search_heads_data VALUES(1,X'03030208');
INSERT INTO search_heads_data VALUES(10,X'000000000106060006010101020101030101040101050101060101');
INSERT INTO search_heads_data VALUES(137438953473,X'00000087073062726F6B656E0102020104636F6F6B030601020201086465736372697074010601020301046B6E6F7402020201046C65656B030601020301026E6F01060102020105706974636804060102020104726F7065020C01010201020301047361696C020601010302036F7570030202010474656E740408020102030201690206010202040B0B0F090B090C0E0B080C');
INSERT INTO search_heads_data VALUES(274877906945,X'000000440430616E64050601020401046B6E6F7405020201046C696E6505060102050104726F7065050C01010201020301047361696C0506010103010274690506010202040A090B0E0B');
INSERT INTO search_heads_data VALUES(412316860417,X'0000002205306B6E6F7402010104726F7065020101047361696C020101027469020104080808');
INSERT INTO search_heads_data VALUES(549755813889,X'000000440430616E64060601020401046B6E6F7406020201046C696E6506060102050104726F7065060C01010201020301047361696C0606010103010274690606010202040A090B0E0B');
INSERT INTO search_heads_data VALUES(687194767361,X'000000310430616E64050101046B6E6F74050101046C696E6505010104726F7065050101047361696C0501010274690501040708080808');
INSERT INTO search_heads_data VALUES(824633720833,X'0000001C0530636F6F6B030101046C65656B03010104736F75700301040808');
DELETE FROM "search_heads_idx";
INSERT INTO search_heads_idx VALUES(1,X'',2);
INSERT INTO search_heads_idx VALUES(2,X'',2);
INSERT INTO search_heads_idx VALUES(3,X'',2);
INSERT INTO search_heads_idx VALUES(4,X'',2);
INSERT INTO search_heads_idx VALUES(5,X'',2);
INSERT INTO search_heads_idx VALUES(6,X'',2);
DELETE FROM "search_heads_docsize";
INSERT INTO search_heads_docsize VALUES(1,X'010002');
INSERT INTO search_heads_docsize VALUES(4,X'010002');
INSERT INTO search_heads_docsize VALUES(6,X'010204');
DELETE FROM "search_bodies_data";
INSERT INTO search_bodies_data VALUES(1,X'030A');
INSERT INTO search_bodies_data VALUES(10,X'000000000106060006010101020101030101040101050101060101');
INSERT INTO search_bodies_data VALUES(137438953473,X'0000006C0330627902020401086465736372697074010203010668616D6D657204020302026F7702020201026E6F01020201037065670402050106736C6F776C6903020402036F757003020202037465700204030403026972030203010474656E740402020202686504020404070D0B0707080B08090709');
INSERT INTO search_bodies_data VALUES(274877906945,X'0000001D033062790502040103686F7705020201047374657005040304040708');
INSERT INTO search_bodies_data VALUES(412316860417,X'000000190330627902010103686F7702010104737465700201040607');
INSERT INTO search_bodies_data VALUES(549755813889,X'000000290730626F776C696E060205010566697273740602030103686F770602020103746865060204040B0A08');
INSERT INTO search_bodies_data VALUES(687194767361,X'000000190330627905010103686F7705010104737465700501040607');
INSERT INTO search_bodies_data VALUES(824633720833,X'0000001C0730736C6F776C69030102036F7570030102037469720301040A07');
DELETE FROM "search_bodies_idx";
INSERT INTO search_bodies_idx VALUES(1,X'',2);
INSERT INTO search_bodies_idx VALUES(2,X'',2);
INSERT INTO search_bodies_idx VALUES(3,X'',2);
INSERT INTO search_bodies_idx VALUES(4,X'',2);
INSERT INTO search_bodies_idx VALUES(5,X'',2);
INSERT INTO search_bodies_idx VALUES(6,X'',2);
DELETE FROM "search_bodies_docsize";
INSERT INTO search_bodies_docsize VALUES(1,X'02');
INSERT INTO search_bodies_docsize VALUES(4,X'04');
INSERT INTO search_bodies_docsize VALUES(6,X'04');
INSERT INTO sketches VALUES(1,X'000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000CB6BC8B6000000000000000000000000000000000000000000000000000000001F28AA67');
INSERT INTO sketches VALUES(4,X'00000000000000000000000000000000000000003C23236629C229A400000000000000000000000000000000000000000000000000000000D96A7CEC00000000000000000000000000000000000000000F716620');
INSERT INTO sketches VALUES(6,X'000000009804B18A00000000000000005F492F8E0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000D37402A31CA799536D9BF50700000000BFD5F717');
INSERT INTO audit VALUES(1,'2026-11-23T20:09:50Z',NULL,NULL,NULL,NULL,'source added','mine','{"path": "/home/ann/skills"}');
CREATE INDEX ix_skills_listing ON skills (name_key, name, source_id, position) WHERE live = 1;
CREATE INDEX ix_skills_name ON skills (name);
CREATE INDEX ix_skills_position ON skills (source_id, position) WHERE live = 1;
CREATE INDEX ix_skills_ref ON skills (ref);
CREATE INDEX ix_skills_uid ON skills (uid);
CREATE UNIQUE INDEX uq_skills_live_folder ON skills (source_id, folder) WHERE live = 1;
CREATE INDEX ix_diagnostics_skill_id ON diagnostics (skill_id);
CREATE INDEX ix_diagnostics_source_id ON diagnostics (source_id);
CREATE INDEX ix_skill_tags_skill_id ON skill_tags (skill_id);
CREATE INDEX ix_gone_name ON gone (name);
CREATE INDEX ix_changes_uid ON changes (uid);
CREATE VIEW skill_tag AS
SELECT s.ref, s.name, t.tag FROM skills s JOIN skill_tags t ON t.skill_id = s.id WHERE s.live = 1 AND s.status <> 'no_document';
CREATE VIEW revision AS
SELECT s.ref AS skill, r.number, r.name, r.seen_at,
    CASE r.number WHEN 1 THEN 'added' ELSE 'updated' END AS what,
    CASE WHEN s.tree_hash = r.tree_hash THEN 1 ELSE 0 END = 1 AS current,
    r.document, r.content_hash, r.tree_hash, r.uid
FROM revisions r LEFT JOIN skills s ON s.uid = r.uid AND s.live = 1 AND s.status <> 'no_document';
CREATE VIEW usage_by_day AS
SELECT d.day, s.ref AS skill, d.listed, d.found, d.read, d.uid
FROM usage_days d LEFT JOIN skills s ON s.uid = d.uid AND s.live = 1 AND s.status <> 'no_document';
CREATE VIEW skill AS
SELECT s.ref, s.name, s.description, s.kind, s.category,
    CASE s.tags WHEN '' THEN '[]' ELSE '["' || replace(replace(replace(
        s.tags, '\', '\\'), '"', '\"'), '
', '","') || '"]' END AS tags,
    src.scope, src.name AS source,
    CASE s.folder WHEN '.' THEN src.path ELSE src.path || '/' || s.folder END AS path,
    s.version, s.license, s.author, s.created_at, s.updated_at, s.content_hash, s.tree_hash,
    s.status, s.shadowed = 1 AS shadowed, s.hidden = 1 AS hidden, s.folder, src.host, src.project,
    src.url AS origin_url, src.pin AS origin_ref, src.version AS origin_commit,
    s.held = 1 AS held, s.file_count, s.bytes,
    coalesce(u.listed, 0) AS listed, coalesce(u.found, 0) AS found, coalesce(u.read, 0) AS read,
    u.last_read_at, s.uid
FROM skills s JOIN sources src ON src.id = s.source_id LEFT JOIN usage u ON u.uid = s.uid
WHERE s.live = 1 AND s.status <> 'no_document';
CREATE INDEX ix_skills_unseen ON skills (source_id) WHERE live = 0;
