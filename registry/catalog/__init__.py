"""Read the catalogue: lists, search, single skills and visibility.

The package uses plain SQL on the driver's connection, because importing SQLAlchemy takes long. The
package is internal: names in this package can change in any version.
"""
