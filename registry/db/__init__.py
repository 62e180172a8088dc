"""The database: its schema, and reading and writing on SQLite and PostgreSQL.

Internal, see `registry`: anything here may change with any version.
"""
