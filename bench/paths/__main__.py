"""Whether two load generators say the same of each network path: tables of stores of `docs/examples/generators-*`.

    python -m bench.paths STORE… --markdown build/bench-paths.md

Of each path the overhead by either generator, and what they differ by: the ratio of the two overheads in the same
block, less 1, with its interval. No agreement is claimed from an interval that is wider than `AGREED`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench.paths.agreement import agreement, table
from bench.tables import show
from tare.analyze.analysis import analyze
from tare.store import open_store


def main() -> int:
    """Print the tables, and write them to `--markdown` where asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("stores", nargs="+", type=Path)
    options.add_argument("--markdown", type=Path)
    chosen = options.parse_args()
    parts = []
    for path in chosen.stores:
        store = open_store(path)
        study = store.plan.study
        analysis = analyze(study, list(store.records()))
        parts.append("\n".join(table(study, analysis, agreement(study, analysis))))
    text = "\n\n".join(parts) + "\n"
    show(text, chosen.markdown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
