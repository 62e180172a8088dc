"""Publish skills: versions, proposals and their review, the git remote.

Internal: names in this package can change in any version.
"""
