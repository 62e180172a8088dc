"""`python -m registry` is the same as the command `skill-registry`."""

from registry.cli import main

if __name__ == "__main__":
    main()
