"""Predictions of an arm's cost from the unit costs of a machine, and their accuracy so far."""
