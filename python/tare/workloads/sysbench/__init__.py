"""sysbench 1.0.20: OLTP, cpu and fileio."""
