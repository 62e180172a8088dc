"""Skill folders on disk: walk and read them, and replace folders safely (internal)."""
