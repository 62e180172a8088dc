"""A server as the database: where it is, and the connections to it."""
