"""`container`: the image runs in the host's engine."""
