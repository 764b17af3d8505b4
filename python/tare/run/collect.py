"""Raw files brought home: from the run's directory on the host into the store's staging, free of passwords."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tare.databases import Secrets
from tare.run.credentials import redact
from tare.sites import Host

_TIMEOUT_S = 30.0


def collect(
    host: Host, source: str, staging: Path, *, notes: Mapping[str, str], secrets: Secrets
) -> tuple[str, ...]:
    """Copy the directory `source` and tare's own `notes` (name → text); the names of what is now in `staging`.

    A run that failed early may not have made the directory. Nothing is left in `staging` when it cannot be done
    whole (a full disk, most likely).
    """
    try:
        staging.mkdir(parents=True, exist_ok=True)
        if host.run(["test", "-d", source], timeout_s=_TIMEOUT_S, check=False).code == 0:
            host.get(source, staging)
        for name, text in notes.items():
            (staging / name).write_text(text)
        redact(staging, secrets)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    return raw_names(staging)


def raw_names(staging: Path) -> tuple[str, ...]:
    """The files in `staging`, by their paths below it."""
    return tuple(sorted(str(path.relative_to(staging)) for path in staging.rglob("*") if not path.is_dir()))
