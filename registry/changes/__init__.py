"""Create, update, delete, restore: disk and database change together or not at all.

The protocol is that of RELIABILITY: stage beside the source, journal, rename, verify what the
rename displaced, record. `protocol.carry_out` is one change, `recovery.recover` finishes or undoes
what a dead process left.

Internal, as `registry` says: what is here may change with any version.
"""
