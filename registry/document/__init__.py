"""Read, check and write SKILL.md files.

Internal: names in this room can change in any version.
"""
