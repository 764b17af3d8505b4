"""Study file → Study: parse, apply scale and levels, check."""
