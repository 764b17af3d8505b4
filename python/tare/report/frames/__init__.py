"""Tidy frames of a store, one row an observation, a finding or a sample: docs/reference/python.md."""
