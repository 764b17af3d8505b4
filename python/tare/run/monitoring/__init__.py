"""The monitors of an attempt: start, stop, trim to the measure phase."""
