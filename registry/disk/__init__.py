"""Skill folders on disk: walk them, read them, and never write into them."""
