"""Monitors' views in reports."""
