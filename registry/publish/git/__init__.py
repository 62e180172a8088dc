"""The git repository that agents' own clients install from: objects, layout, protocol, export.

Nothing here needs a git program. A repository has one commit without a parent, so objects are never
stored as differences, and a pack can be cut out of another pack.
"""
