"""An example of tare's plug-ins: a database that counts, and the workload that drives it."""
