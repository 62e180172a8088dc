"""Personalities: who sees which skill, and why."""

from registry.catalog.visibility.decisions import decide_all, decisions, personality, seen_ids
from registry.catalog.visibility.rules import Decision, Facts, Host, decide

__all__ = [
    "Decision",
    "Facts",
    "Host",
    "decide",
    "decide_all",
    "decisions",
    "personality",
    "seen_ids",
]
