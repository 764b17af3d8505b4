"""Records → estimates. Pure, no printing."""
