"""What a call through the agent costs, beside plain SSH: see `python -m bench.agent --help`."""
