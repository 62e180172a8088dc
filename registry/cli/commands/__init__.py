"""The commands. A module is imported only when its command runs (see `registry.cli.app`)."""
