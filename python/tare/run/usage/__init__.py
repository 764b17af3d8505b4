"""What a run used: CPU time, disks, and how near each side was to its limits."""
