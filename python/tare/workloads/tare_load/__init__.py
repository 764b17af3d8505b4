"""tare-load, tare's own load generator."""
