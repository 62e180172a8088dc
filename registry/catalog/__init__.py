"""The reading lane: plain SQL over a driver's connection, without SQLAlchemy's start-up cost.

Internal, as `registry` says: what is here may change with any version.
"""
