"""`tare check`: overheads against a limit, as text, Markdown, JUnit XML and JSON."""
