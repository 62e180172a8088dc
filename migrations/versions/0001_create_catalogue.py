"""Create the catalogue: sources, skills with all that belongs to them, and full-text search.

Revision ID: 0001
Revises:
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Compared byte by byte on both databases, so that both keep the same order.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "sources",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("path", TEXT, nullable=False),
        sa.Column("scope", TEXT, nullable=False),
        sa.Column("priority", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("strength", sa.Integer(), nullable=False),
        sa.Column("enabled", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("added_at", TEXT, nullable=False),
        sa.Column("last_sync_at", TEXT, nullable=True),
        sa.Column("last_result", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sources")),
        sa.UniqueConstraint("name", name=op.f("uq_sources_name")),
        sa.UniqueConstraint("path", name=op.f("uq_sources_path")),
    )
    op.create_table(
        "skills",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uid", TEXT, nullable=False),
        sa.Column("live", sa.Integer(), nullable=False),
        sa.Column("replaces", sa.Integer(), nullable=True),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("folder", TEXT, nullable=False),
        sa.Column("position", TEXT, nullable=False),
        sa.Column("ref", TEXT, server_default="", nullable=False),
        sa.Column("shadowed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("name", TEXT, nullable=False),
        sa.Column("name_key", TEXT, nullable=False),
        sa.Column("description", TEXT, nullable=False),
        sa.Column("kind", TEXT, nullable=True),
        sa.Column("category", TEXT, nullable=True),
        sa.Column("version", TEXT, nullable=True),
        sa.Column("license", TEXT, nullable=True),
        sa.Column("author", TEXT, nullable=True),
        sa.Column("compatibility", TEXT, nullable=True),
        sa.Column("tags", TEXT, server_default="", nullable=False),
        sa.Column("created_at", TEXT, nullable=False),
        sa.Column("updated_at", TEXT, nullable=False),
        sa.Column("indexed_at", TEXT, nullable=False),
        sa.Column("content_hash", TEXT, nullable=True),
        sa.Column("tree_hash", TEXT, nullable=True),
        sa.Column("document", TEXT, nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("file_count", sa.Integer(), nullable=False),
        sa.Column("fingerprint", TEXT, nullable=False),
        sa.Column("racy", sa.Integer(), nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("hidden", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("required_tools", TEXT, server_default="[]", nullable=False),
        sa.Column("parameters", TEXT, server_default="[]", nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_skills_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_skills")),
    )
    op.create_index(
        "ix_skills_listing",
        "skills",
        ["name_key", "name", "source_id", "position"],
        sqlite_where=sa.text("live = 1"),
        postgresql_where=sa.text("live = 1"),
    )
    op.create_index("ix_skills_name", "skills", ["name"], unique=False)
    op.create_index(
        "ix_skills_position",
        "skills",
        ["source_id", "position"],
        sqlite_where=sa.text("live = 1"),
        postgresql_where=sa.text("live = 1"),
    )
    op.create_index("ix_skills_ref", "skills", ["ref"])
    op.create_index("ix_skills_uid", "skills", ["uid"])
    op.create_index(
        "uq_skills_live_folder",
        "skills",
        ["source_id", "folder"],
        unique=True,
        sqlite_where=sa.text("live = 1"),
        postgresql_where=sa.text("live = 1"),
    )
    op.create_table(
        "diagnostics",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("skill_id", sa.Integer(), nullable=True),
        sa.Column("folder", TEXT, nullable=False),
        sa.Column("code", TEXT, nullable=False),
        sa.Column("severity", TEXT, nullable=False),
        sa.Column("message", TEXT, nullable=False),
        sa.Column("path", TEXT, nullable=True),
        sa.Column("line", sa.Integer(), nullable=True),
        sa.Column("fix", TEXT, nullable=True),
        sa.ForeignKeyConstraint(
            ["skill_id"], ["skills.id"], name=op.f("fk_diagnostics_skill_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["sources.id"], name=op.f("fk_diagnostics_source_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_diagnostics")),
    )
    op.create_index("ix_diagnostics_skill_id", "diagnostics", ["skill_id"], unique=False)
    op.create_index("ix_diagnostics_source_id", "diagnostics", ["source_id"], unique=False)
    op.create_table(
        "documents",
        sa.Column("skill_id", sa.Integer(), nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.Column("body_start", sa.Integer(), nullable=False),
        sa.Column("front_matter", TEXT, nullable=False),
        sa.Column("indexed", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["skill_id"], ["skills.id"], name=op.f("fk_documents_skill_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("skill_id", name=op.f("pk_documents")),
    )
    op.create_table(
        "skill_files",
        sa.Column("skill_id", sa.Integer(), nullable=False),
        sa.Column("path", TEXT, nullable=False),
        sa.Column("mode", sa.Integer(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("ctime_ns", sa.BigInteger(), nullable=False),
        sa.Column("inode", sa.BigInteger(), nullable=False),
        sa.Column("hash", TEXT, nullable=True),
        sa.ForeignKeyConstraint(
            ["skill_id"], ["skills.id"], name=op.f("fk_skill_files_skill_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("skill_id", "path", name=op.f("pk_skill_files")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "skill_tags",
        sa.Column("tag", TEXT, nullable=False),
        sa.Column("skill_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["skill_id"], ["skills.id"], name=op.f("fk_skill_tags_skill_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tag", "skill_id", name=op.f("pk_skill_tags")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_skill_tags_skill_id", "skill_tags", ["skill_id"], unique=False)
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE skill_search USING fts5("
            "name, tags, description, body, content='', tokenize='unicode61 remove_diacritics 2')"
        )
    else:
        op.execute(
            "CREATE TABLE skill_search (skill_id INTEGER PRIMARY KEY "
            "REFERENCES skills (id) ON DELETE CASCADE, words tsvector NOT NULL, "
            "head tsvector NOT NULL)"
        )
        for column in ("words", "head"):
            op.execute(
                f"CREATE INDEX ix_skill_search_{column} ON skill_search USING gin ({column})"
            )


def downgrade() -> None:
    op.execute("DROP TABLE skill_search")
    for table in ("diagnostics", "skill_tags", "skill_files", "documents", "skills", "sources"):
        op.drop_table(table)
