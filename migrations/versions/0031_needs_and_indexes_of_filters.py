"""Keep what a skill needs beside its tools; indexes for filters and for the date of creation.

A view limited to a personality then reads no documents.

Revision ID: 0031
Revises: 0030
"""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

MENTIONED = " OR ".join(
    f"lower(front_matter) LIKE '{pattern}'"
    for pattern in (
        "%fallback%for%tools%",
        "%env%required%",
        "%external%cli%alternatives%",
    )
)


def upgrade() -> None:
    live = sa.text("live = 1")
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.add_column("skills", sa.Column("needs", text))
    op.execute(
        "UPDATE skills SET needs = "
        "(SELECT front_matter FROM documents WHERE documents.skill_id = skills.id) "
        f"WHERE id IN (SELECT skill_id FROM documents WHERE {MENTIONED})"
    )
    for name, columns in (
        ("category", [sa.text("lower(category)")]),
        ("kind", [sa.text("lower(kind)")]),
        ("created", [sa.text("created_at DESC"), "name_key", "source_id", "position"]),
    ):
        op.create_index(
            f"ix_skills_{name}", "skills", columns, sqlite_where=live, postgresql_where=live
        )


def downgrade() -> None:
    for name in ("created", "kind", "category"):
        op.drop_index(f"ix_skills_{name}", "skills")
    op.drop_column("skills", "needs")
