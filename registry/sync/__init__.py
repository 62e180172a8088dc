"""Bring the database in line with the sources: scan, plan, apply.

Internal: names in this package can change in any version.
"""
