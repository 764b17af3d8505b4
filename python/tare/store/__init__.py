"""Versioned, append-only run records and their raw files."""
