"""The database: its schema, and how it is read and written on SQLite and PostgreSQL.

Internal, see `registry`: anything here may change with any version.
"""
