"""The database: its schema, and the code that reads and writes SQLite and PostgreSQL.

Internal, see `registry`: everything in this package may change with any version.
"""
