"""The database: what is stored, how it is read and written, on SQLite and on PostgreSQL.

Internal, as `registry` says: what is here may change with any version.
"""
