"""Control groups by name, whoever's else come and go meanwhile."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from pathlib import Path

_GROUPS = "/sys/fs/cgroup"


def groups_called(pattern: str) -> list[Path]:
    """In every hierarchy. A group that goes while it is looked into is passed over, as `Path.rglob` would not."""
    walked = os.walk(_GROUPS)
    return [Path(folder, name) for folder, names, _ in walked for name in names if fnmatch(name, pattern)]
