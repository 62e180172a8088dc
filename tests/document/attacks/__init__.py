"""Inert samples of attacks, by technique: what the checks must find, and what they must not."""
