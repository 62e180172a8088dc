"""Run migrations: on the connection the program hands over, else on alembic.ini's database."""

from alembic import context

from registry.db.open import engine_at
from registry.db.schema import COUNTED, SEARCH_TABLES, metadata


def include_name(name: str | None, kind: str, _parents: object) -> bool:
    """Leave to the migrations what they write in SQL: what only a file or only a server has."""
    if kind == "index" and name == COUNTED:
        return False
    own = (SEARCH_TABLES, "data_version", "hosts", "teams", "content_uses", "leases", "commit")
    return not (kind == "table" and name is not None and name.startswith(own))


def run(connection: object) -> None:
    """Migrate on ``connection`` within its transaction."""
    context.configure(
        connection=connection,  # type: ignore[arg-type]  # handed over by registry.db.migrate
        target_metadata=metadata,
        include_name=include_name,
        render_as_batch=True,
        compare_type=True,
        transactional_ddl=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    url = context.config.get_main_option("sqlalchemy.url") or ""
    with engine_at(url).begin() as own:
        run(own)
