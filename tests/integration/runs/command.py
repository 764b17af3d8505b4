"""The `tare` command, run whole as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_LONGEST_S = 1200


def tare(cwd: Path, *words: str, code: int = 0) -> str:
    """What it printed; of one that is to fail with `code`, what it said of that."""
    command = [sys.executable, "-m", "tare", *words]
    done = subprocess.run(command, cwd=cwd, env=os.environ, capture_output=True, timeout=_LONGEST_S, check=False)
    assert done.returncode == code, done.stderr.decode()
    return (done.stderr if code else done.stdout).decode()
