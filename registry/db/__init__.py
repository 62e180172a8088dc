"""The database: its schema, and the code that reads and writes SQLite and PostgreSQL.

This package is internal: it may change in any version. The public interface is in `registry`.
"""
