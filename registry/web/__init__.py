"""The web catalogue: pages, the same facts as JSON, and APIs for clients (extra ``web``)."""
