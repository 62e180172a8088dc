"""Publish skills: versions, proposals and their review, the git remote.

This package is internal: names in it can change in any version.
"""
