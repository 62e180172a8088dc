"""Reading the catalogue: lists, search, single skills and visibility.

It uses plain SQL on the driver's connection, because SQLAlchemy takes long to import. Internal:
names in this package can change in any version.
"""
