"""Fuzzing of all that tare reads: `make fuzz MINUTES=10`, or `.venv/bin/python -m tools.fuzz --help`."""
