"""Read, check and write SKILL.md files.

Internal: names in this package can change in any version.
"""
