"""The web catalogue: HTML pages, their data as JSON, and APIs for clients (extra ``web``)."""
