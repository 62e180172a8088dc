"""The commands; each module is imported only when its command runs (see `registry.cli.app`)."""
