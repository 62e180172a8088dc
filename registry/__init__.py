"""One SQLite catalogue over all your agent skills, in step with the folders on disk."""

__version__ = "0.1.0"
