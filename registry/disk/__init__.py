"""Skill folders on disk: walk and read them, and replace folders safely.

Internal, see `registry`: anything here may change with any version.
"""
