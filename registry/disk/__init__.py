"""Skill folders on disk: walk them, read them, and never write into them.

Internal, as `registry` says: what is here may change with any version.
"""
