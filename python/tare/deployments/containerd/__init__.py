"""`containerd`: the image in a container made by containerd itself, without dockerd."""
