"""Skills in folders and agents: pull, its lock, updates, import and export (internal)."""
