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


def upgrade() -> None:
    op.create_table(
        "sources",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("strength", sa.Integer(), nullable=False),
        sa.Column("enabled", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("added_at", sa.Text(), nullable=False),
        sa.Column("last_sync_at", sa.Text(), nullable=True),
        sa.Column("last_result", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sources")),
        sa.UniqueConstraint("name", name=op.f("uq_sources_name")),
        sa.UniqueConstraint("path", name=op.f("uq_sources_path")),
    )
    op.create_table(
        "skills",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("uid", sa.Text(), nullable=False),
        sa.Column("live", sa.Integer(), nullable=False),
        sa.Column("replaces", sa.Integer(), nullable=True),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("position", sa.Text(), nullable=False),
        sa.Column("ref", sa.Text(), server_default="", nullable=False),
        sa.Column("shadowed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=True),
        sa.Column("category", sa.Text(), nullable=True),
        sa.Column("version", sa.Text(), nullable=True),
        sa.Column("license", sa.Text(), nullable=True),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("compatibility", sa.Text(), nullable=True),
        sa.Column("tags", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Text(), nullable=False),
        sa.Column("indexed_at", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=True),
        sa.Column("tree_hash", sa.Text(), nullable=True),
        sa.Column("document", sa.Text(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("file_count", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("racy", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("hidden", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("required_tools", sa.Text(), server_default="[]", nullable=False),
        sa.Column("parameters", sa.Text(), server_default="[]", nullable=False),
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
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=True),
        sa.Column("line", sa.Integer(), nullable=True),
        sa.Column("fix", sa.Text(), nullable=True),
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
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("body_start", sa.Integer(), nullable=False),
        sa.Column("front_matter", sa.Text(), nullable=False),
        sa.Column("indexed", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["skill_id"], ["skills.id"], name=op.f("fk_documents_skill_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("skill_id", name=op.f("pk_documents")),
    )
    op.create_table(
        "skill_files",
        sa.Column("skill_id", sa.Integer(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("mode", sa.Integer(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("mtime_ns", sa.BigInteger(), nullable=False),
        sa.Column("ctime_ns", sa.BigInteger(), nullable=False),
        sa.Column("inode", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["skill_id"], ["skills.id"], name=op.f("fk_skill_files_skill_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("skill_id", "path", name=op.f("pk_skill_files")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "skill_tags",
        sa.Column("tag", sa.Text(), nullable=False),
        sa.Column("skill_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["skill_id"], ["skills.id"], name=op.f("fk_skill_tags_skill_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("tag", "skill_id", name=op.f("pk_skill_tags")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_skill_tags_skill_id", "skill_tags", ["skill_id"], unique=False)
    op.execute(
        "CREATE VIRTUAL TABLE skill_search USING fts5("
        "name, tags, description, body, content='', tokenize='unicode61 remove_diacritics 2')"
    )


def downgrade() -> None:
    op.execute("DROP TABLE skill_search")
    for table in ("diagnostics", "skill_tags", "skill_files", "documents", "skills", "sources"):
        op.drop_table(table)
