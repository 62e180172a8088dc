"""Read and write a registry in a SQLite file, with the driver of the standard library."""
