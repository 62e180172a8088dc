"""Read the database: SQL that both databases share, and the classes of the returned values."""
