"""Reading and writing a registry on a PostgreSQL server, which several machines share."""
