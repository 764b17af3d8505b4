"""Rotation: the servers of all arms at once, driven one at a time in short turns."""
