"""Create, update, delete and restore skills; disk and database change together.

If a change fails, neither of them changes. This package is internal: names in it can change in any
version.
"""
