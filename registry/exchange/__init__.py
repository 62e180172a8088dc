"""Skills on their way out of a registry: into folders, locked to what they were."""
