"""What lies where in a store's directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class StoreLayout:
    """Paths of one store; every key of them is told in docs/reference/store.md."""

    root: Path

    @property
    def database(self) -> Path:
        """Records, facts and the study."""
        return self.root / "store.sqlite"

    @property
    def raw(self) -> Path:
        """raw/RUN-ATTEMPT/: the tools' own output of each recorded attempt."""
        return self.root / "raw"

    @property
    def staging(self) -> Path:
        """staging/RUN-ATTEMPT/: output of the attempt under way; worthless once its process is gone."""
        return self.root / "staging"

    @property
    def lock(self) -> Path:
        """Held (flock(2)) by the one process that writes."""
        return self.root / "lock"

    @property
    def now(self) -> Path:
        """What that process is doing, for those who watch; renewed by a rename, and worthless once it is gone."""
        return self.root / "now.json"


def attempt_name(run_id: str, attempt: int) -> str:
    """Name of an attempt's directory under `raw` and `staging`."""
    return f"{run_id}-{attempt}"
