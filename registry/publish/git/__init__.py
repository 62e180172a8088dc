"""The git repository from which agents' own clients install: objects, layout, protocol, export.

This package needs no git program. No commit has a parent, and no object is stored as a difference
from another object. So a pack can be made from a part of another pack.
"""
