"""End all that runs on the hosts of a pair of test hosts, as if their power had gone, in the middle of a study.

    python -m tools.chaos.power STORE --after 6 --site pair-2      # root

It waits until the store has so many good runs. The hosts do not come back; `tools.hosts down` removes what is left.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tare.errors import TareError
from tare.store import open_store
from tools import hosts
from tools.lab import HostsFailed, own_lab

_LOOK_S = 0.5


def good_runs(store: Path) -> int:
    """How many runs the store has by now; 0 while it is not there."""
    try:
        return sum(record.outcome.ok for record in open_store(store).records())
    except TareError:
        return 0


def main(words: Sequence[str] | None = None) -> int:
    """Exit code 0, or 1 with a sentence where the study did not come so far."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("--after", type=int, default=6, help="good runs in the store (default 6)")
    parser.add_argument("--site", default="pair-2", help="whose hosts lose power (default pair-2)")
    parser.add_argument("--within", type=float, default=600.0, help="seconds to wait for those runs (default 600)")
    given = parser.parse_args(words)
    deadline = time.monotonic() + given.within
    while good_runs(given.store) < given.after:
        if time.monotonic() > deadline:
            print(f"tare: the store had no {given.after} good runs within {given.within:g} s", file=sys.stderr)
            return 1
        time.sleep(_LOOK_S)
    try:
        cut = hosts.cut_power(own_lab(), given.site)
    except HostsFailed as error:
        print(f"tare: {error}", file=sys.stderr)
        return 1
    print(f"Cut the power of {' and '.join(cut)}, the hosts of {given.site}.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
