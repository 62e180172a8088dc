"""The writing lane: the schema, its migrations, and transactions (SQLAlchemy)."""
