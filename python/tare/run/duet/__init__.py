"""Duets: two arms at once, on CPU sets that are swapped half-way."""
