"""Finding skills by what is said: queries, ranking, what of it is shown, and how well it fits."""
