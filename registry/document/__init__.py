"""Read, check and write SKILL.md files.

Internal, as `registry` says: what is here may change with any version.
"""
