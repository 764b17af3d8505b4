"""Writes into each file of a directory once it is told to begin: python3 -I rewrite.py DIRECTORY."""

import sys
from pathlib import Path

for path in sorted(Path(sys.argv[1]).iterdir()):
    with path.open("r+b") as file:
        file.write(b"\2" * 4096)
