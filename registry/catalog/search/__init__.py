"""Search: queries, ranking, snippets, and how well a hit fits the query."""
