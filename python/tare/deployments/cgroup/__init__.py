"""Control groups: the hierarchies of a host, and where tasks are placed in them."""
