"""The report as Markdown."""
