"""SQLite: one file, read and written through the standard library's driver."""
