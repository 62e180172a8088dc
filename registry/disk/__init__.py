"""Walk and read skill folders on disk, and replace folders safely.

This package is internal: names in it can change in any version.
"""
