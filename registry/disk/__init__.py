"""Walk and read skill folders on disk, and replace folders safely.

Internal: names in this package can change in any version.
"""
