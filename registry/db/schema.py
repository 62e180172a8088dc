"""The tables of the database.

Migrations create them; a test compares the migrated tables with this module. Migrations also define
the SQL views for users (docs/reference/sql-views.md).

A row of ``skills`` is one version of a skill. A sync first stores new versions with ``live`` 0;
such versions are "staged", and readers ignore them. Then one transaction sets ``live`` to 1 for all
of them. All versions of a skill have the same ``uid``.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy import Text as AnyText

Text = AnyText().with_variant(AnyText(collation="C"), "postgresql")
"""Type of text columns; both databases compare the text byte by byte, so they sort it equally."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _skill_id() -> Column[int]:
    """Return the column for a version's id.

    If the version is deleted, the database deletes its rows.
    """
    skill = ForeignKey("skills.id", ondelete="CASCADE")
    return Column("skill_id", skill, primary_key=True, nullable=False)


def _texts(names: str) -> list[Column[Any]]:
    """Return text columns that may be NULL."""
    return [Column(name, Text) for name in names.split()]


def _given(names: str, kind: type[Integer] | AnyText = Text) -> list[Column[Any]]:
    """Return columns that are never NULL; by default, their type is text."""
    return [Column(name, kind, nullable=False) for name in names.split()]


sources = Table(
    "sources",
    metadata,
    Column("id", Integer, primary_key=True),
    *_given("name path scope"),
    Column("priority", Integer, nullable=False, server_default=text("0")),
    # The scope and the priority of the source as one number; the lowest number has the highest
    # precedence.
    Column("strength", Integer, nullable=False),
    Column("enabled", Integer, nullable=False, server_default=text("1")),
    # The name of the machine that has the folder. In a SQLite file, the name is empty, because the
    # folder is on the machine that opens the file.
    Column("host", Text, nullable=False, server_default=""),
    # The folder in which a project's skills are visible. NULL if the scope is not project.
    Column("project", Text),
    Column("added_at", Text, nullable=False),
    *_texts("last_sync_at last_result"),
    # The address of the remote source, its type, the pinned version and the chosen parts of the
    # source. `chosen` has one skill name in each line. All are NULL if the folder is local.
    *_texts("kind url pin part chosen"),
    # The last fetched version, and the time of the fetch.
    *_texts("version fetched_at"),
    # On a server: the role that added the source, which the server itself records, and the team
    # that sees the source (NULL if all roles see it). In a file, both are always NULL.
    *_texts("owner team"),
    # On a server: the precedence that an admin gave the source among the sources of all owners. The
    # default is 0.
    Column("precedence", Integer, nullable=False, server_default=text("0")),
    # If the source is under review, the lowest id of the revisions that need approval; else 0.
    Column("review", BigInteger, nullable=False, server_default=text("0")),
    UniqueConstraint("name"),
    UniqueConstraint("host", "path"),
)

skills = Table(
    "skills",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", Text, nullable=False),
    Column("live", Integer, nullable=False),
    # The id of the version that this staged version replaces.
    Column("replaces", Integer),
    Column("source_id", ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    *_given("folder position"),
    Column("ref", Text, nullable=False, server_default=""),
    Column("shadowed", Integer, nullable=False, server_default=text("0")),
    # 1 if the skill's name without a source means only this skill to users who see the skill.
    # Skills of other projects don't count.
    Column("bare", Integer, nullable=False, server_default=text("0")),
    # The refs of all skills with the same name and files, including this skill; one in each line.
    Column("copies", Text, nullable=False, server_default=""),
    *_given("name name_key description"),
    *_texts("kind category version license author compatibility"),
    # The tags, one in each line. The table skill_tags also has them; with this column, a listing
    # reads them without a second query.
    Column("tags", Text, nullable=False, server_default=""),
    *_given("created_at updated_at indexed_at"),
    *_texts("content_hash tree_hash document"),
    Column("bytes", BigInteger, nullable=False),
    Column("file_count", Integer, nullable=False),
    Column("fingerprint", Text, nullable=False),
    # 1 if the files changed just before they were read. Then an equal time doesn't
    # prove an equal file.
    Column("racy", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("hidden", Integer, nullable=False, server_default=text("0")),
    # 1 if the skill is quarantined: it is from a remote source and has security errors that no user
    # has accepted. 2 if its files are a yanked version.
    Column("held", Integer, nullable=False, server_default=text("0")),
    # The origin of an installed copy, as the lock file of its pull records the origin, in the
    # format of `read.skills.ORIGIN`. NULL if no lock file lists the folder, or if the folder was
    # edited after the pull.
    Column("installed", Text),
    Column("required_tools", Text, nullable=False, server_default="[]"),
    Column("parameters", Text, nullable=False, server_default="[]"),
    # The front matter as JSON, if it may name further needs (`document.fields.may_name_needs`).
    Column("needs", Text),
)
# On a server, the migration adds this condition. A condition here would import the PostgreSQL
# dialect each time.
_LIVE: dict[str, Any] = {"sqlite_where": skills.c.live == 1}
Index("uq_skills_live_folder", skills.c.source_id, skills.c.folder, unique=True, **_LIVE)
Index("ix_skills_position", skills.c.source_id, skills.c.position, **_LIVE)
# The order of listings. With this index, the database reads a page without sorting.
_LISTED = (skills.c.name_key, skills.c.name, skills.c.source_id, skills.c.position)
Index("ix_skills_listing", *_LISTED, **_LIVE)
# The order of listings by time of update.
_UPDATED = (skills.c.updated_at.desc(), skills.c.name_key, skills.c.source_id, skills.c.position)
Index("ix_skills_updated", *_UPDATED, **_LIVE)
_CREATED = (skills.c.created_at.desc(), skills.c.name_key, skills.c.source_id, skills.c.position)
Index("ix_skills_created", *_CREATED, **_LIVE)
# Filters ignore case.
Index("ix_skills_category", func.lower(skills.c.category), **_LIVE)
Index("ix_skills_kind", func.lower(skills.c.kind), **_LIVE)
Index("ix_skills_installed", skills.c.source_id, sqlite_where=skills.c.installed.is_not(None))
Index("ix_skills_unseen", skills.c.source_id, sqlite_where=skills.c.live == 0)
Index("ix_skills_name", skills.c.name)
Index("ix_skills_ref", skills.c.ref)
Index("ix_skills_uid", skills.c.uid)

documents = Table(
    "documents",
    metadata,
    _skill_id(),
    Column("text", Text, nullable=False),
    # The offset in characters at which the Markdown body starts.
    Column("body_start", Integer, nullable=False),
    Column("front_matter", Text, nullable=False),
    # How the full-text index stores the skill: 0 not stored, 1 unchanged, 2 split into segments
    # (`text.segment`).
    Column("indexed", Integer, nullable=False),
)

# MinHash sketches of texts, which the search for near-duplicates compares; see `document.minhash`.
sketches = Table(
    "sketches",
    metadata,
    _skill_id(),
    Column("data", LargeBinary, nullable=False),
    # The key of a model, and a sentence vector; see `catalog.search.meaning`.
    Column("vector", LargeBinary),
)

skill_files = Table(
    "skill_files",
    metadata,
    _skill_id(),
    Column("path", Text, primary_key=True, nullable=False),
    Column("mode", Integer, nullable=False),
    *_given("size mtime_ns ctime_ns inode", BigInteger),
    Column("hash", Text),
    sqlite_with_rowid=False,
)

skill_tags = Table(
    "skill_tags",
    metadata,
    Column("tag", Text, primary_key=True, nullable=False),
    _skill_id(),
    sqlite_with_rowid=False,
)
Index("ix_skill_tags_skill_id", skill_tags.c.skill_id)

diagnostics = Table(
    "diagnostics",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    # NULL if the finding is about a path in the source, and this path is not a skill.
    Column("skill_id", ForeignKey("skills.id", ondelete="CASCADE")),
    *_given("folder code severity message"),
    Column("path", Text),
    Column("line", Integer),
    Column("fix", Text),
)
Index("ix_diagnostics_skill_id", diagnostics.c.skill_id)
Index("ix_diagnostics_source_id", diagnostics.c.source_id)
# Queries select security findings by their codes; they are only a small part of all findings.
Index("ix_diagnostics_code", diagnostics.c.code, diagnostics.c.severity, diagnostics.c.skill_id)

journal = Table(
    "journal",
    metadata,
    Column("id", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("source_id", ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    *_given("root kind folder target staged"),
    *_texts("base new"),
    Column("exchange", Integer, nullable=False),
    *_texts("uid created_at"),
    Column("started_at", Text, nullable=False),
)

# How often tools listed, found and read each skill. The key is the uid, without a foreign key, for
# two reasons: each sync adds and deletes versions, and a deleted skill may be restored.
usage = Table(
    "usage",
    metadata,
    Column("uid", Text, primary_key=True, nullable=False),
    *_given("listed found read", BigInteger),
    *_texts("last_listed_at last_found_at last_read_at"),
)

# The counts of `usage` for each UTC day of the last `write.usage.DAYS` days.
usage_days = Table(
    "usage_days",
    metadata,
    Column("day", Text, primary_key=True, nullable=False),
    Column("uid", Text, primary_key=True, nullable=False),
    *_given("listed found read", BigInteger),
    sqlite_with_rowid=False,
)

# The bytes of files, one row per content hash. If `packed`, the bytes are compressed with zlib.
contents = Table(
    "contents",
    metadata,
    Column("hash", Text, primary_key=True, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("packed", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

# The history of each skill, one row for each different set of files. `files` is a JSON array of
# [path, executable, size, hash]. The key is the uid, so the rows stay if the skill is removed.
revisions = Table(
    "revisions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("document", Text),
    Column("content_hash", Text),
    *_given("tree_hash seen_at files"),
    # The origin of the skill at that time, in the format of `read.skills.ORIGIN`.
    Column("origin", Text),
    # The turn of the revision. Each time that a skill gets other files, the revision of these files
    # gets the next turn. A new revision has its first turn as its number. NULL if the turn equals
    # the number, because the revision became current only once.
    Column("turn", Integer),
    # The author of the change. The server itself records the role. The client sends the other
    # values.
    *_texts("role host tool client"),
    UniqueConstraint("uid", "number"),
    UniqueConstraint("uid", "tree_hash"),
)

# Skills that were removed with their folder or source ("tombstones"). Readers ignore the row if a
# skill with this uid exists again. If the registry deleted the folder, `trash` is its number in the
# trash.
gone = Table(
    "gone",
    metadata,
    Column("uid", Text, primary_key=True, nullable=False),
    Column("name", Text, nullable=False),
    # These columns are empty for skills that were removed before the columns existed.
    *_given("source folder created_at since"),
    *_texts("tree_hash trash"),
    *_texts("owner team"),
)
Index("ix_gone_name", gone.c.name)

# The last changes that the registry made, for `undo`. `before` and `after` are tree hashes; for a
# pull, they are the JSON of `install.pull_records`. `undo` accepts only changes with this user's
# `signature`. Only `undo` uses `host`.
changes = Table(
    "changes",
    metadata,
    Column("id", Integer, primary_key=True),
    *_given("number host kind uid name source folder"),
    *_texts("before after"),
    *_given("made_at signature"),
    *_texts("role tool client command"),
    UniqueConstraint("number"),
)
Index("ix_changes_uid", changes.c.uid)

# The access tokens of the web catalogue, by hash. A token is valid only if the row has this user's
# `signature`. `used_at` may be forged.
tokens = Table(
    "tokens",
    metadata,
    Column("number", Text, primary_key=True, nullable=False),
    *_given("hash name"),
    Column("personality", Text),
    Column("source", Text),
    Column("write", Integer, nullable=False),
    Column("created_at", Text, nullable=False),
    *_texts("expires_at used_at"),
    Column("signature", Text, nullable=False),
    # On a server, the role that owns the token.
    Column("role", Text),
    # 1 if the token may publish skills over HTTP, and approve proposals.
    Column("publish", Integer, nullable=False, server_default=text("0")),
    Column("approve", Integer, nullable=False, server_default=text("0")),
    UniqueConstraint("hash"),
)

# Changes that wait for a review or have been decided. `base` is the tree hash of the files that the
# change replaces (NULL if it creates the skill). `tree_hash` is the tree hash of the new files, and
# `archive` has these files as a zip. On a server, `role` is the role that added the row.
proposals = Table(
    "proposals",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("source_id", ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    *_given("kind name folder"),
    *_texts("uid base"),
    *_given("tree_hash author"),
    Column("token", Text),
    Column("created_at", Text, nullable=False),
    Column("archive", LargeBinary),
    Column("state", Text, nullable=False),
    *_texts("decided_by decided_at reason role"),
)
Index("ix_proposals_source_id", proposals.c.source_id)

# The audit log: changes of sources, rights, trust, tokens and history. Rows are added and never
# changed. On a server, PostgreSQL itself adds the rows. `detail` is JSON: the state of `subject`
# before or after the change.
audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Text, nullable=False),
    *_texts("role host tool client"),
    Column("what", Text, nullable=False),
    *_texts("subject detail"),
)

# The names under which git repositories publish skills: one row for each name that a skill has had.
# Rows are never removed, so that no other owner can get the name and no version number decreases.
# On a server, `owner` is the role that owns the source. `slot` numbers the skills of one source
# with the same name. `number` is the version number: the turn of the skill's files plus `base`,
# which is the last number of the earlier skill in the slot.
entries = Table(
    "entries",
    metadata,
    Column("id", Integer, primary_key=True),
    *_given("uid name source"),
    Column("owner", Text),
    Column("slot", Integer, nullable=False),
    *_given("base number", BigInteger),
    UniqueConstraint("uid", "name"),
)
Index("ix_entries_name", entries.c.name)

# The versions of skills: labels such as "1.2", each for one set of files. Rows are added and never
# changed. The row with number 0 creates a version. Each later row changes its state (active,
# deprecated or yanked) and has the same hash. The key is the uid, so the rows stay if the skill is
# removed. On a server, the server itself records the role.
labels = Table(
    "labels",
    metadata,
    Column("id", Integer, primary_key=True),
    *_given("uid label"),
    Column("number", Integer, nullable=False),
    *_given("tree_hash state at"),
    *_texts("reason replacement role host tool client"),
    UniqueConstraint("uid", "label", "number"),
)
Index("ix_labels_tree_hash", labels.c.tree_hash)

SEARCH_TABLES = "search_"
"""Prefix of the names of the full-text tables; see `db.interface.IndexPart`, `text.segment`."""

COUNTED = "ix_skills_counted"
"""Index of a SQLite file with all columns that counts read; see the migration 0032.

A server has no such index, because its indexes refuse long texts.
"""
