"""The monitors of an attempt: started, stopped, trimmed to the measure phase."""
