"""Commands about machines: abilities, images, leftovers, machines from clouds, tare-probe and tare-load."""
