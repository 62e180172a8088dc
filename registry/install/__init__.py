"""Skills in folders and agents: pull, its lock, updates, import and export.

Internal, as `registry` describes: any version may change this package.
"""
