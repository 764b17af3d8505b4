"""The record of a run: what `run` writes once, and every later stage reads."""
