"""The reading lane: plain SQL over a driver's connection, without SQLAlchemy's start-up cost."""
