"""Queries: plain SQL, written once for both databases, and the values they return."""
