"""`containerd`: a container made by containerd itself, without dockerd."""
