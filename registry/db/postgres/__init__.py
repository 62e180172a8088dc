"""PostgreSQL: a server that several machines share."""
