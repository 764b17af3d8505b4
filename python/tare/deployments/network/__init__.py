"""tare's own networks, and the path that traffic takes."""
