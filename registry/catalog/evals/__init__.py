"""The prompts that skills ship to test themselves with, asked of the search."""
