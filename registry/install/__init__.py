"""Skills in folders and agents: pull, its lock, updates, import and export.

Internal, as `registry` says: what is here may change with any version.
"""
