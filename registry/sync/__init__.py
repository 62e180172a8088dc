"""Bring the database in line with the sources: scan, plan, apply.

This package is internal: names in it can change in any version.
"""
