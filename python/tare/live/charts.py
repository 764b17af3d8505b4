"""How the browser draws: Vega-Lite specifications without data, in the colours of the reports."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert
from sqlalchemy.exc import SQLAlchemyError

from tare.analyze.timelines.series import CLIENT, ENGINE, HOST, SUT
from tare.errors import TareError
from tare.report.charts.theme import ACCENT, INK, MUTED, PLAIN, PUBLISHED, WIDE, themed, value_axis
from tare.sites.layout import default_layout, make_directory
from tare.sites.ledger import Kind
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

_VERSION = version("vl-convert-python")
_ONE_AT_A_TIME = threading.Lock()


DATA = "rows"
"""Name of the data that the page fills in."""
_HEIGHT_PX = 120
_LABELS_PX = 46
_WHOLE = "datum.value === floor(datum.value) ? format(datum.value, 'd') : ''"
"""For few blocks, Vega also labels halves."""
_AXIS: Mapping[str, Any] = {"grid": True, "tickCount": 4}


def charting_script(folder: Path | None = None) -> bytes:
    """The charting script. Bundling takes seconds of CPU time, so it is cached per version in tare's home."""
    kept = (folder or default_layout().home / "live") / f"vega-{_VERSION}.js"
    with _ONE_AT_A_TIME:
        with contextlib.suppress(OSError):
            if content := kept.read_bytes():
                return content
        script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").encode()
        with contextlib.suppress(OSError, TareError, SQLAlchemyError):
            make_directory(kept.parent)
            _note(kept.parent)
            scratch = kept.with_name(f"{kept.name}.{os.getpid()}")
            scratch.write_bytes(script)
            scratch.replace(kept)
        return script


def _note(folder: Path) -> None:
    """Note the cache in the ledger, so that `tare clean` removes it with the others."""
    SqliteLedger(default_layout().ledger).note(Kind.PATH, str(folder), host=LocalHost().name, keep=True)


def specifications() -> Mapping[str, Any]:
    """Kind of chart → its specification; each chart is as wide as its place on the page."""
    return {"trail": _trail(), "line": _line(), "trace": _trace()}


def _trail() -> Any:
    """One arm's effect with its interval after each block, in percent; dashed: the target width."""
    x = alt.X("blocks:Q", axis=_axis(title="blocks", labelExpr=_WHOLE), scale=alt.Scale(nice=False))
    y = alt.Y("point:Q", axis=_axis(labelExpr="datum.label + ' %'"), scale=alt.Scale(zero=False))
    data = _data()
    return _dressed(
        data.mark_area(color=ACCENT, opacity=0.18, clip=True).encode(x=x, y=_scaled("low"), y2="high:Q"),
        # The first interval has no area by itself.
        data.mark_rule(color=ACCENT, opacity=0.35, strokeWidth=2).encode(x=x, y=_scaled("low"), y2="high:Q"),
        data.mark_line(color=ACCENT, strokeWidth=2).encode(x=x, y=y),
        data.mark_point(color=ACCENT, filled=True, size=22, opacity=1).encode(x=x, y=y),
        *(
            data.mark_line(color=PUBLISHED, strokeDash=[4, 3], strokeWidth=1.2).encode(x=x, y=_scaled(bound))
            for bound in ("target_low", "target_high")
        ),
    )


def _line() -> Any:
    """A value over the seconds of a run, one line per run; it begins at second 0, as traces do."""
    x = alt.X("second:Q", axis=_axis(title="s", labelExpr=PLAIN), scale=alt.Scale(nice=False, zero=True))
    y = alt.Y("value:Q", axis=value_axis(**_AXIS), scale=alt.Scale(zero=True))
    runs = alt.Detail("run:N")
    dashes = alt.StrokeDash("run:N", legend=None)
    return _dressed(
        _data().mark_line(color=ACCENT, strokeWidth=1.6).encode(x=x, y=y, detail=runs, strokeDash=dashes)
    )


def _trace() -> Any:
    """A resource over the seconds of a run, one line per user of it."""
    x = alt.X("second:Q", axis=_axis(title="s", labelExpr=PLAIN), scale=alt.Scale(nice=False, zero=True))
    y = alt.Y("value:Q", axis=value_axis(**_AXIS), scale=alt.Scale(zero=True))
    colours = alt.Scale(domain=[SUT, CLIENT, ENGINE, HOST], range=[ACCENT, PUBLISHED, INK, MUTED])
    who = alt.Color("who:N", scale=colours, legend=None)
    return _dressed(
        _data()
        .mark_line(strokeWidth=1.4)
        .encode(x=x, y=y, color=who, detail="run:N", strokeDash=alt.StrokeDash("run:N", legend=None))
    )


def _data() -> alt.Chart:
    return alt.Chart(alt.NamedData(name=DATA))


def _scaled(column: str) -> alt.Y:
    return alt.Y(f"{column}:Q", scale=alt.Scale(zero=False), title=None)


def _axis(**settings: Any) -> alt.Axis:
    return alt.Axis(**{"title": None, **_AXIS, **settings})


def _dressed(*layers: Any) -> Any:
    chart = alt.layer(*layers).properties(width="container", height=_HEIGHT_PX)
    return themed(chart, WIDE)
