"""NFS storage: a server of the run's own, and the kernel's client."""
