"""Fetch remote sources (git repositories, archives, sites and hubs) into local checkouts."""
