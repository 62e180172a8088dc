"""Skills on their way out of a registry and into one: folders, web sites, archives.

Internal, as `registry` says: what is here may change with any version.
"""
