"""Between the hosts of a site: aligned clocks, the measured network, and the proved paths of connections."""
