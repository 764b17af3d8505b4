"""Estimators as published studies used them, for comparison only. Each says what is wrong with it."""
