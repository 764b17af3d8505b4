"""`tare compare`: the same study from two stores, in the terminal, as Markdown and as JSON."""
