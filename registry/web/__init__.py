"""The web catalogue: pages, the same facts as JSON, and what other clients ask (extra ``web``)."""
