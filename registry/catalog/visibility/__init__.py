"""Personalities: who sees which skill, and why."""
