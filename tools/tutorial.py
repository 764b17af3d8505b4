"""Keeps the runs of a store as one that the tutorial shows, so that its outputs are measured and can be tested.

python -m tools.tutorial STORE NAME     NAME as in docs/tutorial.md: demo-store, noisy-store or next-store

Then write the page anew: TARE_WRITE_GOLDEN=1 make test-unit PYTEST_ARGS=tests/unit/docs/test_tutorial.py
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tare.record.run_record import RunRecord
from tare.store import open_store

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "data" / "tutorial"
NAMES = ("demo-store", "noisy-store", "next-store")


def kept(name: str, folder: Path = FOLDER) -> list[RunRecord] | None:
    """The runs of a store that was measured for the tutorial; `None` if it has made-up ones."""
    file = folder / f"{name}.json.gz"
    if not file.exists():
        return None
    return [RunRecord.model_validate(tree, strict=False) for tree in json.loads(gzip.decompress(file.read_bytes()))]


def keep(store: Path, name: str, folder: Path = FOLDER) -> Path:
    """Write the runs of a store; the same runs give the same bytes."""
    trees = [record.model_dump(mode="json") for record in open_store(store).records()]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json.gz"
    file.write_bytes(gzip.compress(json.dumps(trees, separators=(",", ":")).encode(), mtime=0))
    return file


def main(words: Sequence[str] | None = None) -> int:
    """Exit code 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("name", choices=NAMES)
    given = parser.parse_args(words)
    print(keep(given.store, given.name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
