"""Toolsets: JSON in, JSON out, one file a contract."""
