"""How counts of use are added up, in words that both databases understand."""

from typing import Final

ADD: Final = """
INSERT INTO usage (uid, listed, found, read, last_listed_at, last_found_at, last_read_at)
SELECT s.uid, ?, ?, ?, ?, ?, ? FROM skills s JOIN sources src ON src.id = s.source_id
WHERE src.name = ? AND s.folder = ? AND s.live = 1
ON CONFLICT (uid) DO UPDATE SET
  listed = usage.listed + excluded.listed,
  found = usage.found + excluded.found,
  read = usage.read + excluded.read,
  last_listed_at = coalesce(excluded.last_listed_at, usage.last_listed_at),
  last_found_at = coalesce(excluded.last_found_at, usage.last_found_at),
  last_read_at = coalesce(excluded.last_read_at, usage.last_read_at)
"""
"""Values: listed, found, read, when last each; source's name, folder. No skill: nothing added."""
