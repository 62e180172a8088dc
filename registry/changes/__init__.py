"""Create, update, delete, restore: disk and database change together or not at all (internal)."""
