"""Tables of a report as rows of text, the same in every format."""
