"""Install skills into folders and agents (`pull`), update, import and export them.

This package is internal: names in it can change in any version.
"""
