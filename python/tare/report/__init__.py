"""Estimates → terminal, HTML, Markdown, CSV, JSON."""
