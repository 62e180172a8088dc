"""Skills on their way out of a registry and into one: folders, web sites, archives."""
