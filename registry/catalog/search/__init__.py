"""Search: parse queries, rank skills, make snippets, and compute how well a hit matches."""
