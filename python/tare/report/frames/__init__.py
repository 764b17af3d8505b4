"""Tidy frames of a store, one row for each observation, finding or sample: docs/reference/python.md."""
