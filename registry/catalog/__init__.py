"""The reading lane: plain SQL on a driver's connection, without SQLAlchemy's start-up cost.

Internal: names in this room can change in any version.
"""
