"""Search: queries, ranking, snippets, and how well a hit matches the query."""
