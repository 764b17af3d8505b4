"""A trend over stores of one study, as text, Markdown and JSON."""
