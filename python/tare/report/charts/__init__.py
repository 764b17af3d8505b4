"""Charts as static SVG, drawn when the report is written: no script runs in the reader's browser."""
