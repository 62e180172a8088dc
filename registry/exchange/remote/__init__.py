"""Sources that lie elsewhere: what they hold, and our checkouts of it."""
