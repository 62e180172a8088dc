"""Personalities: which skills each personality sees, and why."""
