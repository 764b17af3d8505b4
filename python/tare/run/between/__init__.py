"""Between the hosts of a site: their clocks laid on one, the wire measured, the path of connections proved."""
