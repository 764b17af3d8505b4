"""Estimators and tests on plain numbers."""
