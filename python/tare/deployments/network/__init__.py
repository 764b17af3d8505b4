"""Networks of tare's own, and the path that traffic takes."""
