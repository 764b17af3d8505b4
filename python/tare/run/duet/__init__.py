"""Duets: two arms at once, on CPUs that are swapped half-way."""
