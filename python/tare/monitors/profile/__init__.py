"""The monitor `profile`: stacks of all CPUs while a run measures."""
