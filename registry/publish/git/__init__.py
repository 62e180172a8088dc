"""The git repository that agents' own clients install from: objects, layout, protocol, export.

Nothing here needs a git program. No commit has a parent, and no object is stored as a difference
from another object. So a pack can be made from a part of another pack.
"""
