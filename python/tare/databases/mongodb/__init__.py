"""MongoDB and its wire protocol."""
