"""Create, update, delete, restore: disk and database change together or not at all.

`commit.commit` makes one change; `recovery.recover` finishes or undoes the changes of a dead
process.

Internal, as `registry` describes: any version may change this package.
"""
