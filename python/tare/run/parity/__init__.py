"""Parity: whether runs may be compared, and what was really in force."""
