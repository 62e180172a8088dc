"""Remote sources: git, archives, sites and hubs, fetched into our checkouts."""
