"""Install skills into folders and agents with `pull`, update, import and export them.

Internal: names in this package can change in any version.
"""
