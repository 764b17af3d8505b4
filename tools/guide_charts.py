"""Draw the chart of the guide on loops and sustainable rates, as reports draw it: `make guide-charts`.

The curves lie beside it as JSON. `--from STORE` takes them from a store of a study at its scale `sustainable`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

from tare.analyze.climb import Climb, Step, climb_of
from tare.report.charts.climb import climb, in_words
from tare.report.charts.theme import WIDE, draw
from tare.store import open_store

CHARTS = Path(__file__).resolve().parents[1] / "docs" / "guides" / "charts"
NAME = "latency-over-load"
_VARIABLES = re.compile(r"--(?:paper|ink|muted|line|accent|c\d): #\w+;")
Curves = list[tuple[str, Climb]]


def kept() -> Curves:
    """What lies beside the guide."""
    tree = json.loads((CHARTS / f"{NAME}.json").read_text(encoding="utf-8"))
    return [
        (arm, Climb(**{**one, "steps": tuple(Step(**step) for step in one["steps"])})) for arm, one in tree.items()
    ]


def of_store(path: Path) -> Curves:
    """Of every arm that climbed."""
    good = [record for record in open_store(path).records() if record.outcome.ok]
    arms = dict.fromkeys(record.arm for record in good)
    found = [(arm, climb_of([record for record in good if record.arm == arm])) for arm in arms]
    return [(arm, one) for arm, one in found if one is not None]


def drawn(curves: Curves) -> str:
    """An SVG that stands alone: a report's page has the colours, which are put into it here."""
    style = files("tare.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    light = "".join(_VARIABLES.findall(style[: style.index("@media")]))
    picture = draw(climb(curves, WIDE), NAME, in_words(curves))
    head, bracket, rest = picture.partition(">")
    dress = f"<style>svg{{{light}background:var(--paper);font-family:sans-serif}}</style>"
    return f"{head}{bracket}{dress}{rest}\n"


def main() -> int:
    """Write the chart, and with `--from` the curves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="store", type=Path, help="a store, whose curves replace those that are kept")
    options = parser.parse_args()
    if options.store is not None:
        tree = {arm: asdict(one) for arm, one in of_store(options.store)}
        (CHARTS / f"{NAME}.json").write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")
    (CHARTS / f"{NAME}.svg").write_text(drawn(kept()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
