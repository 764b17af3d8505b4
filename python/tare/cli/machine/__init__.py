"""The machine: what it can do, its images, what tare left on it, and the programs tare-probe and tare-load."""
