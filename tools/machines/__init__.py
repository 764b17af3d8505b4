"""Machines as tare's users have them: Debian with systemd and engines, as user-mode Linux, and what works there."""
