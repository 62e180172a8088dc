"""The tables of the database. Migrations build them; a test holds both together.

The views for people (docs/reference/sql-views.md) stand in the migrations that made them.

A row of ``skills`` is one version of a skill: a sync stages new versions with ``live`` 0, which no
reader sees, and then makes all of them live at once. ``uid`` is what stays the same.
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
    text,
)
from sqlalchemy import Text as AnyText

Text = AnyText().with_variant(AnyText(collation="C"), "postgresql")
"""Compared byte by byte on both databases, so that both keep the same order."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _skill_id() -> Column[int]:
    """Return the key of a row that belongs to one version of a skill, and goes with it."""
    skill = ForeignKey("skills.id", ondelete="CASCADE")
    return Column("skill_id", skill, primary_key=True, nullable=False)


def _texts(names: str) -> list[Column[Any]]:
    """Return columns of texts that may be missing."""
    return [Column(name, Text) for name in names.split()]


def _given(names: str, kind: type[Integer] | AnyText = Text) -> list[Column[Any]]:
    """Return columns that are never missing, of texts unless said otherwise."""
    return [Column(name, kind, nullable=False) for name in names.split()]


sources = Table(
    "sources",
    metadata,
    Column("id", Integer, primary_key=True),
    *_given("name path scope"),
    Column("priority", Integer, nullable=False, server_default=text("0")),
    # Rank of the scope and priority in one number, the lowest is the strongest.
    Column("strength", Integer, nullable=False),
    Column("enabled", Integer, nullable=False, server_default=text("1")),
    # The machine that has the folder; in a SQLite file empty, for whoever opens it.
    Column("host", Text, nullable=False, server_default=""),
    # The folder in which a project's skills are seen; of all other scopes none.
    Column("project", Text),
    Column("added_at", Text, nullable=False),
    *_texts("last_sync_at last_result"),
    # What the folder is a checkout of, how that is read, and what of it was asked for (`chosen`:
    # names of skills, one a line); of a folder of this machine's own none.
    *_texts("kind url pin part chosen"),
    # What was fetched last, and when.
    *_texts("version fetched_at"),
    # On a server the role that added it, as the server itself says; and who sees it: all, or those
    # of a team. A file knows neither.
    *_texts("owner team"),
    # On a server: how strong an admin has made it among the sources of all owners; 0: ordinary.
    Column("precedence", Integer, nullable=False, server_default=text("0")),
    UniqueConstraint("name"),
    UniqueConstraint("host", "path"),
)

skills = Table(
    "skills",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("uid", Text, nullable=False),
    Column("live", Integer, nullable=False),
    # The version that this staged one takes the place of.
    Column("replaces", Integer),
    Column("source_id", ForeignKey("sources.id", ondelete="CASCADE"), nullable=False),
    *_given("folder position"),
    Column("ref", Text, nullable=False, server_default=""),
    Column("shadowed", Integer, nullable=False, server_default=text("0")),
    # Its name alone means it to who sees it, whatever else has that name in a project elsewhere.
    Column("bare", Integer, nullable=False, server_default=text("0")),
    # The refs of all that have this name and these files, itself among them, one a line.
    Column("copies", Text, nullable=False, server_default=""),
    *_given("name name_key description"),
    *_texts("kind category version license author compatibility"),
    # The tags again, one a line, so that a listing needs no second query.
    Column("tags", Text, nullable=False, server_default=""),
    *_given("created_at updated_at indexed_at"),
    *_texts("content_hash tree_hash document"),
    Column("bytes", BigInteger, nullable=False),
    Column("file_count", Integer, nullable=False),
    Column("fingerprint", Text, nullable=False),
    # The files were so new when they were read that their timestamps prove nothing yet.
    Column("racy", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("hidden", Integer, nullable=False, server_default=text("0")),
    # Of a remote source, with security errors that nobody has accepted: not shown to agents.
    Column("held", Integer, nullable=False, server_default=text("0")),
    # Where an installed copy came from, as the lock of its pull says and `read.skills.ORIGIN` has
    # it; NULL: no lock names its folder, or it was edited since.
    Column("installed", Text),
    Column("required_tools", Text, nullable=False, server_default="[]"),
    Column("parameters", Text, nullable=False, server_default="[]"),
)
# On a server the migration says the same: to name it here would load its dialect each time.
_LIVE: dict[str, Any] = {"sqlite_where": skills.c.live == 1}
Index("uq_skills_live_folder", skills.c.source_id, skills.c.folder, unique=True, **_LIVE)
Index("ix_skills_position", skills.c.source_id, skills.c.position, **_LIVE)
# The order of listings: a page needs no sort, however many skills there are.
_LISTED = (skills.c.name_key, skills.c.name, skills.c.source_id, skills.c.position)
Index("ix_skills_listing", *_LISTED, **_LIVE)
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
    # Where the Markdown body starts in the text, in characters.
    Column("body_start", Integer, nullable=False),
    Column("front_matter", Text, nullable=False),
    # How the full-text index holds it: 0 not at all, 1 as it is, 2 segmented (`text.segment`).
    Column("indexed", Integer, nullable=False),
)

# What is kept of a text so that near copies are known; see `document.minhash`.
sketches = Table(
    "sketches",
    metadata,
    _skill_id(),
    Column("data", LargeBinary, nullable=False),
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
    # NULL: the finding is about a place below the source that is not a skill.
    Column("skill_id", ForeignKey("skills.id", ondelete="CASCADE")),
    *_given("folder code severity message"),
    Column("path", Text),
    Column("line", Integer),
    Column("fix", Text),
)
Index("ix_diagnostics_skill_id", diagnostics.c.skill_id)
Index("ix_diagnostics_source_id", diagnostics.c.source_id)

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

# How often tools listed, found and read each skill. By uid and without a foreign key: rows of
# versions come and go with every sync, and a deleted skill may be restored.
usage = Table(
    "usage",
    metadata,
    Column("uid", Text, primary_key=True, nullable=False),
    *_given("listed found read", BigInteger),
    *_texts("last_listed_at last_found_at last_read_at"),
)

# The same by the UTC day on which it was written down, of the last `write.usage.DAYS`.
usage_days = Table(
    "usage_days",
    metadata,
    Column("day", Text, primary_key=True, nullable=False),
    Column("uid", Text, primary_key=True, nullable=False),
    *_given("listed found read", BigInteger),
    sqlite_with_rowid=False,
)

# The bytes of files, once for each content hash; `packed`: compressed by zlib.
contents = Table(
    "contents",
    metadata,
    Column("hash", Text, primary_key=True, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("packed", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

# What each skill was like, one row for each distinct content; `files` is JSON, an array of
# [path, executable, size, hash]. By uid, and so beyond the skill's deletion.
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
    # Where it came from by then, as `read.skills.ORIGIN` has it.
    Column("origin", Text),
    # The place in the order in which contents were current; NULL: the number, it never came back.
    Column("turn", Integer),
    # Who brought it about: the server's word for the role; the host, the tool and its client are
    # what they said of themselves.
    *_texts("role host tool client"),
    UniqueConstraint("uid", "number"),
    UniqueConstraint("uid", "tree_hash"),
)

# Skills that are live no more: their folder went, or their source. By uid: one that is live again
# is not gone. `trash`: the number of its folder there, where the registry itself deleted it.
gone = Table(
    "gone",
    metadata,
    Column("uid", Text, primary_key=True, nullable=False),
    Column("name", Text, nullable=False),
    # Empty where it went before this was written down, as the folder is.
    *_given("source folder created_at since"),
    *_texts("tree_hash trash"),
    *_texts("owner team"),
)
Index("ix_gone_name", gone.c.name)

# The last changes by the registry, for `undo`; `before` and `after` are tree hashes, of a pull the
# JSON of `install.history`. Only what bears this user's `signature` is taken back, and only for
# that the host is kept.
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

# Who may enter the web catalogue, by the hash of what they show; only a row that bears this user's
# `signature` lets anybody in. `used_at` is a hint.
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
    # On a server whose it is.
    Column("role", Text),
    UniqueConstraint("hash"),
)

# Who changed sources, rights, trust, tokens and the past: rows are added and never changed, on a
# server by the server itself. `detail`: JSON, what `subject` was like or became.
audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Text, nullable=False),
    *_texts("role host tool client"),
    Column("what", Text, nullable=False),
    *_texts("subject detail"),
)

SEARCH_TABLES = "search_"
"""How the tables of the full-text indexes begin; see `db.interface.IndexPart`, `text.segment`."""
