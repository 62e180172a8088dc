"""The database: what is stored, how it is read and written, on SQLite and on PostgreSQL."""
