"""Toolsets: sets of tools; models send JSON to a tool and get JSON.

Each toolset follows one contract, and has a separate file.
"""
