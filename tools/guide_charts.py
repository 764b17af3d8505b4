"""Draw the charts of the guide on loops and sustainable rates, from what lies beside them: `make guide-charts`.

Latency over load is drawn as reports draw it; `--from STORE` takes its curves from a store of a study at its scale
`sustainable`. The chart of a stall shows what a closed and an open loop tell of it; `--stall TARE_LOAD` measures it
anew, with Redis stopped for 2 s of 10 s.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import altair as alt

from bench.load.cpu import REDIS_JOB
from bench.load.open_loop import RUN_S, STOPPED_S, stopped, truth_s
from bench.load.servers import Lab, redis
from tare.analyze.climb import Climb, Step, climb_of
from tare.report.charts.climb import climb, in_words
from tare.report.charts.theme import INK, MUTED, WIDE, draw, of_rows, themed
from tare.store import open_store
from tare.workloads.merged import merge_histograms, percentile
from tare.workloads.tare_load.logs import LATENCY, read_log

CHARTS = Path(__file__).resolve().parents[1] / "docs" / "guides" / "charts"
NAME, STALL = "latency-over-load", "stall"
PERCENTS = (50.0, 75.0, 80.0, 85.0, 90.0, 95.0, 99.0, 99.9, 99.99)
RATE_PER_S, CONNECTIONS = 1_000, 50
TRUTH = "what users waited"
_VARIABLES = re.compile(r"--(?:paper|ink|muted|line|accent|c\d): #\w+;")
_DASHES = ([1, 0], [6, 3], [2, 2])
Curves = list[tuple[str, Climb]]
Told = Mapping[str, Mapping[str, float]]
"""Loop → percentile → ms."""


def kept() -> Curves:
    """What lies beside the guide."""
    tree = json.loads((CHARTS / f"{NAME}.json").read_text(encoding="utf-8"))
    return [
        (arm, Climb(**{**one, "steps": tuple(Step(**step) for step in one["steps"])})) for arm, one in tree.items()
    ]


def kept_stall() -> Told:
    """The same of the stall."""
    curves: Told = json.loads((CHARTS / f"{STALL}.json").read_text(encoding="utf-8"))
    return curves


def of_store(path: Path) -> Curves:
    """Of every arm that climbed."""
    good = [record for record in open_store(path).records() if record.outcome.ok]
    arms = dict.fromkeys(record.arm for record in good)
    found = [(arm, climb_of([record for record in good if record.arm == arm])) for arm in arms]
    return [(arm, one) for arm, one in found if one is not None]


def measured_stall(load: Path) -> Told:
    """A closed loop and an open one against a Redis that is stopped; all share a CPU, which adds little to 2 s."""
    loops = {"closed loop": [], f"open loop, {RATE_PER_S:,}/s": ["--rate", str(RATE_PER_S), "--spacing", "even"]}
    found: dict[str, Mapping[str, float]] = {}
    with tempfile.TemporaryDirectory() as scratch, redis(0) as server:
        lab = Lab(load.resolve(), Path(scratch), server_cpu=0, client_cpu=0)
        asks = ["--protocol", "redis", "--address", f"127.0.0.1:{server.port}", "--duration", str(RUN_S)]
        job = lab.written("redis.yaml", REDIS_JOB)
        for number, (name, arrivals) in enumerate(loops.items()):
            logs = Path(scratch) / str(number)
            logs.mkdir()
            own = ["--job", job, "--connections", str(CONNECTIONS), "--logs", str(logs)]
            stopped([str(lab.load), "run", *asks, *own, *arrivals], lab.client_cpu, server)
            buckets = merge_histograms(read_log(logs / LATENCY).values())
            found[name] = {f"{percent:g}": percentile(buckets, percent) or 0.0 for percent in PERCENTS}
    return found


def stall(curves: Told) -> dict[str, Any]:
    """The Vega-Lite specification: percentiles along, latency up, logarithmic, and the computed truth."""
    ordered = [f"p{percent:g}" for percent in PERCENTS]
    truth = {f"{percent:g}": truth_s(percent / 100) * 1e3 for percent in PERCENTS}
    lines = {**curves, TRUTH: truth}
    rows = [
        {"loop": name, "percentile": f"p{percent}", "ms": ms}
        for name, curve in lines.items()
        for percent, ms in curve.items()
        if ms > 0.001
    ]
    names = list(lines)
    legend = alt.Legend(
        title=None,
        orient="top",
        columnPadding=32,
        labelFontSize=WIDE.text_px,
        labelColor=INK,
        symbolType="stroke",
        symbolSize=300,
    )
    colours = ["var(--c1)", "var(--c2)", MUTED]
    x = alt.X("percentile:N", sort=ordered, axis=alt.Axis(title="percentile of latency", labelAngle=0))
    y = alt.Y("ms:Q", scale=alt.Scale(type="log"), axis=alt.Axis(title="ms", format="~g", tickCount=6))
    colour = alt.Color("loop:N", sort=names, scale=alt.Scale(domain=names, range=colours), legend=legend)
    dash = alt.StrokeDash("loop:N", sort=names, scale=alt.Scale(domain=names, range=_DASHES), legend=legend)
    line = of_rows(rows).mark_line(strokeWidth=2.2, point=True).encode(x=x, y=y, color=colour, strokeDash=dash)
    return themed(line.properties(width=WIDE.page_px - 120, height=300), WIDE)


def stall_in_words(curves: Told) -> str:
    """The chart for those who cannot see it."""
    p99 = "; ".join(f"{name} {curve['99']:.3g} ms" for name, curve in curves.items())
    truth = f"{truth_s(0.99) * 1e3:,.0f} ms"
    when = f"with the server stopped {STOPPED_S:g} s of {RUN_S:g}"
    return f"Chart: percentiles of latency {when}. p99: {p99}; true {truth}."


def drawn(curves: Curves) -> str:
    """Latency over load."""
    return alone(draw(climb(curves, WIDE), NAME, in_words(curves)))


def drawn_stall(curves: Told) -> str:
    """The stall."""
    return alone(draw(stall(curves), STALL, stall_in_words(curves)))


def alone(picture: str) -> str:
    """An SVG that stands alone: a report's page has the colours, which are put into it here."""
    style = files("tare.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    light = "".join(_VARIABLES.findall(style[: style.index("@media")]))
    head, bracket, rest = picture.partition(">")
    dress = f"<style>svg{{{light}background:var(--paper);font-family:sans-serif}}</style>"
    return f"{head}{bracket}{dress}{rest}\n"


def main() -> int:
    """Write the charts, and with `--from` or `--stall` what they are drawn from."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="store", type=Path, help="a store, whose curves replace those that are kept")
    parser.add_argument("--stall", type=Path, metavar="TARE_LOAD", help="measure the stall anew with this program")
    options = parser.parse_args()
    try:
        curves = None if options.stall is None else measured_stall(options.stall)
    except (OSError, subprocess.SubprocessError) as error:
        return _failed(error)
    if curves is not None:
        (CHARTS / f"{STALL}.json").write_text(json.dumps(curves, indent=1) + "\n", encoding="utf-8")
    if options.store is not None:
        tree = {arm: asdict(one) for arm, one in of_store(options.store)}
        (CHARTS / f"{NAME}.json").write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")
    (CHARTS / f"{NAME}.svg").write_text(drawn(kept()), encoding="utf-8")
    (CHARTS / f"{STALL}.svg").write_text(drawn_stall(kept_stall()), encoding="utf-8")
    return 0


def _failed(error: Exception) -> int:
    print(f"guide_charts: the stall was not measured: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
