"""Draw the turns of one generation for docs/concepts/protocols.md: `python -m tools.turns_chart [--from STORE]`.

`--from` takes them from the generation `--block` of a study that rotated; else from what lies beside the chart.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt

from tare.record.run_record import RunRecord
from tare.report.charts.theme import INK, WIDE, draw, of_rows, themed
from tare.store import open_store
from tools.guide_charts import alone

CHARTS = Path(__file__).resolve().parents[1] / "docs" / "concepts" / "charts"
NAME = "turns"
Turns = Mapping[str, Sequence[Mapping[str, float]]]
"""Arm → its turns: `from_s` and `until_s` since the first one, `per_s`: operations a second."""


def of_records(records: Sequence[RunRecord], arms: Sequence[str], rounds: int) -> Turns:
    """Return the first turns of these arms in one generation."""
    first_s = min(record.rotation.began_s for record in records if record.rotation)
    return {record.arm: _turns(record, rounds, first_s) for record in records if record.arm in arms}


def _turns(record: RunRecord, rounds: int, first_s: float) -> list[dict[str, float]]:
    turns = record.measurement and record.measurement.turns
    assert record.rotation, f"{record.run_id} took no turns"
    assert turns, f"nothing was counted in the turns of {record.run_id}"
    zero_s = record.rotation.began_s - first_s
    columns = zip(turns.settled_s, turns.ends_s, turns.operations, strict=True)
    return [
        {"from_s": round(zero_s + begin, 4), "until_s": round(zero_s + end, 4), "per_s": count / (end - begin)}
        for begin, end, count in list(columns)[:rounds]
    ]


def spec(turns: Turns) -> dict[str, Any]:
    """The Vega-Lite specification: a bar for each turn, as long as it lasts, at the rate of its arm."""
    rows = [{"arm": arm, **turn} for arm, each in turns.items() for turn in each]
    names = list(turns)
    legend = alt.Legend(title=None, orient="top", labelFontSize=WIDE.text_px, labelColor=INK, symbolType="stroke")
    scale = alt.Scale(domain=names, range=[f"var(--c{place + 1})" for place in range(len(names))])
    x = alt.X("from_s:Q", axis=alt.Axis(title="seconds since the first measured turn"))
    y = alt.Y("per_s:Q", scale=alt.Scale(zero=True), axis=alt.Axis(title="operations/s", format="~s", tickCount=5))
    colour = alt.Color("arm:N", sort=names, scale=scale, legend=legend)
    bars = of_rows(rows).mark_rule(strokeWidth=5).encode(x=x, x2="until_s:Q", y=y, color=colour)
    return themed(bars.properties(width=WIDE.page_px - 120, height=260), WIDE)


def in_words(turns: Turns) -> str:
    """The chart for those who cannot see it."""
    means = {arm: sum(turn["per_s"] for turn in each) / len(each) for arm, each in turns.items()}
    rates = "; ".join(f"{arm} {mean:,.0f}/s" for arm, mean in means.items())
    return f"Chart: turns of one generation, each a bar at the rate of its arm. Means: {rates}."


def drawn(turns: Turns) -> str:
    """The chart as an SVG that stands alone."""
    return alone(draw(spec(turns), NAME, in_words(turns)))


def kept() -> Turns:
    """What lies beside the chart."""
    turns: Turns = json.loads((CHARTS / f"{NAME}.json").read_text(encoding="utf-8"))
    return turns


def main() -> int:
    """Write the chart, and with `--from` what it is drawn from."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="store", type=Path, help="a store, whose turns replace those that are kept")
    parser.add_argument("--block", type=int, default=1)
    parser.add_argument("--arms", nargs="+", default=["bare", "bridge"])
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    if options.store is not None:
        good = [each for each in open_store(options.store).records() if each.outcome.ok]
        in_block = [record for record in good if record.block == options.block]
        tree = of_records(in_block, options.arms, options.rounds)
        CHARTS.mkdir(exist_ok=True)
        (CHARTS / f"{NAME}.json").write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")
    (CHARTS / f"{NAME}.svg").write_text(drawn(kept()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
