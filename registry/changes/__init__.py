"""Create, update, delete, restore: disk and database change together or not at all.

`commit.commit` is one change; `recovery.recover` finishes or undoes what a dead process left.

Internal, as `registry` says: what is here may change with any version.
"""
