"""Changes of the database inside a transaction of SQLAlchemy."""
