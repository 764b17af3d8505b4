"""The `tare` command, run whole as a user would."""

from __future__ import annotations

import sys
from pathlib import Path

from tests import preloaded

_LONGEST_S = 1200


def tare(cwd: Path, *words: str, code: int = 0) -> str:
    """What it printed; of one that is to fail with `code`, what it said of that."""
    done = preloaded.run([sys.executable, "-m", "tare", *words], cwd=cwd, timeout=_LONGEST_S)
    assert done.returncode == code, done.stderr
    return done.stderr if code else done.stdout
