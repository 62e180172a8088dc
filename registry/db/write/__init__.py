"""Writes: what changes the database, inside a transaction of SQLAlchemy."""
