"""Read, check and write SKILL.md files.

This package is internal: names in it can change in any version.
"""
