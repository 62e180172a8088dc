"""Read, check and write SKILL.md files."""
