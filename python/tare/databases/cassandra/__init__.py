"""Cassandra 3.11 and 5.0."""
