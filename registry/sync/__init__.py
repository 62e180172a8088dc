"""Bring the database in line with the sources: scan, plan, apply.

Internal: names in this room can change in any version.
"""
