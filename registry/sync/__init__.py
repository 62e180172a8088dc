"""Bring the database in line with the sources: scan, plan, apply.

Internal, as `registry` says: what is here may change with any version.
"""
