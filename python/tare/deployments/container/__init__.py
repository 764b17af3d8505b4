"""`container`: the image in the host's engine."""
