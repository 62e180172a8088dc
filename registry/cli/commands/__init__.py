"""One file a command, imported only when that command runs (`registry.cli.app` lists them)."""
