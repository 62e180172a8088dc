"""Bring the database in line with the sources: scan, plan, apply."""
