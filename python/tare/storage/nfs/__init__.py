"""NFS storage: a server of its own for each run, and the kernel's client."""
