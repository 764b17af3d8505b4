"""`bare`: the image's root file system as a process of the host."""
