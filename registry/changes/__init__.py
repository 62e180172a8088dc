"""Create, update, delete and restore skills, so that disk and database change together.

If a change fails, neither the disk nor the database changes. Internal: names in this package can
change in any version.
"""
