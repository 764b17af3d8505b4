"""Faults at random moments of studies, and what must hold after them: `python -m tools.chaos --help`."""
