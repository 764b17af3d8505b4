"""Where the time goes, written down: words, terminal, JSON, stacks for other tools, flame graph."""
