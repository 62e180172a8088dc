"""Toolsets: sets of tools that models call with JSON and that answer with JSON.

Each toolset follows one contract, and is in a separate file.
"""
