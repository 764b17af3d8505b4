"""Overlaid runs: which there are, what their lines and marks are, and how a page hides them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.analyze import synthetic
from tests.unit.analyze.timelines.test_timelines import S, group, trace
from tests.unit.analyze.views.test_of_run import store_with
from tests.unit.record.parts import as_tree, with_parts

from tare.analyze.timelines.marks import Mark, TimedRun, marks_of
from tare.analyze.timelines.runs import (
    LATENCY,
    MOST_RUNS,
    THROUGHPUT,
    OverlaidRun,
    RunOverlay,
    Span,
    overlay,
    spans,
)
from tare.analyze.timelines.series import READ, WRITTEN, Point, series
from tare.errors import StoreError
from tare.record.run_record import Phase, RunRecord
from tare.report.charts import laid_over as chart
from tare.report.charts.theme import NARROW, WIDE, draw
from tare.report.sections.runs import colours, hiding, panels, picks, placed
from tare.report.words.marks import mark_lines
from tare.store.trace import Trace


def run_with(**changes: Any) -> RunRecord:
    return synthetic.changed(synthetic.records()[0], lambda tree: tree.update(changes))


def windows(*errors: float) -> RunRecord:
    events = [
        {"end_s": n + 1.0, "errors_per_s": each, "reconnects_per_s": None, "throughput_per_s": 100.0 + n}
        for n, each in enumerate(errors)
    ]
    return run_with(measurement={"throughput_per_s": 1.0, "windows": events})


def happened(**rows: Any) -> Trace:
    one = {"tick": 1, "target": 1, "name": None, "at_ns": 105 * S, "what": "missed", "detail": "3 ticks"}
    collected = trace(event=[one | rows])
    return Trace({**collected.header, "period_ns": S // 10}, collected.quanta, collected.complete, collected.tables)


def marks(run: RunRecord, seen: Trace | None = None) -> list[tuple[str, float, float | None, str]]:
    marked = marks_of(TimedRun(run, seen, zero_s=100.0, over_s=8.0))
    return [(mark.kind, mark.second, mark.until, mark.text) for mark in marked]


def test_errors_of_windows_in_a_row_are_one_mark() -> None:
    assert marks(windows(0.0, 2.0, 5.0, 0.0, 1.0)) == [
        ("errors", 1.0, 3.0, "up to 5 errors/s"),
        ("errors", 4.0, 5.0, "up to 1 errors/s"),
    ]
    assert marks(windows(0.0, 0.0)) == marks(run_with(measurement=None)) == []


def test_a_duet_is_marked_where_its_sides_exchanged_their_cpus() -> None:
    duet = {"partner": "b01-2", "started_s": 101.0, "swap_began_s": 102.5, "swap_ended_s": 102.75}
    assert marks(run_with(duet=duet)) == [("duet", 2.5, 2.75, "the CPU sets were swapped")]
    assert marks_of(TimedRun(run_with(duet=duet, measurement=None), None, zero_s=0.0, over_s=None)) == ()
    assert marks(run_with(duet={"partner": "b01-2", "cpus": []})) == []


def compacted(*events: dict[str, Any]) -> RunRecord:
    return run_with(chronicle={"events": list(events), "tables": {}}, measurement=None)


def test_compactions_are_marks_from_when_to_when_on_the_clock_of_the_trace() -> None:
    whole = {
        "kind": "compaction", "name": "ycsb.usertable", "began_monotonic_s": 101.5, "ended_monotonic_s": 103.0,
        "read_bytes": 3 << 20, "written_bytes": 1 << 20,
    }  # fmt: skip
    text = "compaction of ycsb.usertable: 3 MiB read, 1 MiB written"
    assert marks(compacted(whole)) == [("compaction", 1.5, 3.0, text)]
    assert marks(compacted(whole | {"node": "sut-2"}))[0][3].startswith(
        "compaction of ycsb.usertable at sut-2: 3 MiB"
    )
    assert marks(compacted(whole | {"began_monotonic_s": None})) == [("compaction", 3.0, None, text)]
    assert marks(compacted(whole | {"ended_monotonic_s": None})) == []
    assert marks_of(TimedRun(compacted(whole), None, zero_s=0.0, over_s=None)) == ()


def test_many_compactions_are_told_in_one_entry_beside_all_else() -> None:
    works = [Mark("compaction", float(n), f"of table {n}", until=n + 0.5, work=True) for n in range(9)]
    slept = Mark("recording", 3.0, "the machine slept")
    assert mark_lines([*works, slept]) == (
        "3 s, the machine slept",
        "9 compactions: 0 to 0.5 s, 1 to 1.5 s, 2 to 2.5 s, 3 to 3.5 s, 4 to 4.5 s, 5 to 5.5 s and 3 more",
    )
    assert mark_lines(works[:1]) == ("0 to 0.5 s, of table 0",)
    assert mark_lines([]) == ()


def test_compactions_of_a_run_are_hidden_with_it() -> None:
    written = tuple(Point(WRITTEN, "SUT", float(n), 1.0) for n in range(5))
    work = Mark("compaction", 1.0, "x", until=2.0, work=True)
    runs = tuple(OverlaidRun(f"b{n}-a", "a", n, 1.0, written, (), (work,), shown=True) for n in range(2))
    svg = draw(chart.laid_over(RunOverlay(runs, 2), WIDE), "l", "label")
    assert svg.count('class="run-1"') == 2  # its line and its band
    assert "1 to 2 s, x" in chart.in_words(RunOverlay(runs, 2))


def test_a_gap_in_the_recording_and_a_server_that_ended_are_marked() -> None:
    quiet = windows(0.0)
    assert marks(quiet, happened()) == [("recording", 5.0, None, "tare-probe missed ticks: 3 ticks")]
    slept = {"what": "suspended", "detail": "30000000000 ns"}
    assert marks(quiet, happened(**slept)) == [("recording", 5.0, None, "the machine slept: 30000000000 ns")]
    ended = {"what": "vanished", "name": "sut", "detail": "pid 7"}
    assert marks(quiet, happened(**ended)) == [("process", 5.0, None, "sut ended: pid 7")]


@pytest.mark.parametrize(
    "rows",
    [
        {"what": "vanished", "name": "warm-up"},
        {"what": "vanished", "name": "sut", "at_ns": 99 * S},
        {"what": "vanished", "name": "sut", "at_ns": 108 * S},
        {"what": "counter_fell", "name": "all"},
    ],
    ids=["the warm-up's client", "before measuring", "at the end of it", "an iowait that fell"],
)
def test_what_belongs_to_every_run_is_no_mark(rows: dict[str, Any]) -> None:
    assert marks(windows(0.0), happened(**rows)) == []


def test_the_windows_of_the_generator_are_points_at_their_middle(tmp_path: Path) -> None:
    store = store_with(tmp_path / "store")
    first = store.records()[0]
    measured = windows(0.0, 0.0).measurement
    over = overlay(store.plan.study, store, [first.model_copy(update={"measurement": measured})])
    points = [point for point in over.runs[0].points if point.panel == THROUGHPUT]
    assert [(point.second, point.value) for point in points] == [(0.5, 100.0), (1.5, 101.0)]
    assert not [point for point in over.runs[0].points if point.panel == LATENCY]


def test_windows_and_their_marks_lie_where_the_generator_drove(tmp_path: Path) -> None:
    driven = {"began_monotonic_s": 103.5, "ended_monotonic_s": 106.5, "by": "generator"}
    late = synthetic.changed(windows(0.0, 2.0), lambda tree: tree.update(usage={"driven": driven}))
    assert marks(late) == [("errors", 4.5, 5.5, "up to 2 errors/s")]
    store = store_with(tmp_path / "store")
    first = store.records()[0]
    zero_s = dict(spans(first))[Phase.MEASURE][0]
    driven = {"began_monotonic_s": zero_s + 3.5, "ended_monotonic_s": zero_s + 5.5, "by": "end"}
    usage = {**as_tree(first.usage), "driven": driven}
    over = overlay(store.plan.study, store, [with_parts(first, measurement=as_tree(late.measurement), usage=usage)])
    points = [point for point in over.runs[0].points if point.panel == THROUGHPUT]
    assert [point.second for point in points] == [4.0, 5.0]
    assert over.runs[0].placed_by == "end"


def test_a_reader_is_told_by_what_windows_are_placed() -> None:
    point = (Point(THROUGHPUT, "SUT", 1.0, 1.0),)

    def of(*ways: str | None) -> str:
        runs = [
            OverlaidRun(f"r{n}", "a", n, 1.0, point, (), (), shown=True, placed_by=way)
            for n, way in enumerate(ways)
        ]
        return placed(RunOverlay(tuple(runs), len(runs)))

    assert of("generator", "generator") == ", from the start of measurement that it reports"
    assert of("end").startswith(", placed by its end: ")
    assert of(None).startswith(", by its own clock: ")
    both = of("generator", "end", "generator")
    assert both.startswith("; of 2 runs from the start of measurement")
    assert "; of 1 run placed by its end" in both
    assert placed(None) == placed(RunOverlay((OverlaidRun("r", "a", 1, 1.0, (), (), (), shown=True),), 1)) == ""


def test_a_run_is_chosen_by_its_name_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    store = store_with(tmp_path / "store")
    records = store.records()
    name = records[-1].run_id
    over = overlay(store.plan.study, store, records, [name])
    assert [run.run_id for run in over.runs if run.shown] == [name]
    with pytest.raises(StoreError, match="no run 'nosuch'"):
        overlay(store.plan.study, store, records, ["nosuch"])


def many(arms: int, each: int) -> RunOverlay:
    """Every run of 300 s, with a mark."""
    points = series(trace(seconds=300, cgroup=group("sut", 100, 400)), zero_s=150.0)
    throughput = tuple(Point(THROUGHPUT, "SUT", float(n), 100.0 + n) for n in range(60))
    phases = (Span("measure", 0.0, 240.0),)
    marked = (Mark("errors", 3.0, "x"),)
    runs = tuple(
        OverlaidRun(
            f"b{block}-{arm}", f"arm-{arm}", block, 100.0, (*throughput, *points), phases, marked, shown=block == 1
        )
        for arm in range(arms)
        for block in range(1, each + 1)
    )
    return RunOverlay(runs, len(runs))


def test_as_many_runs_as_there_is_room_for_stay_far_below_three_megabytes() -> None:
    svg = draw(chart.laid_over(many(7, MOST_RUNS // 7), WIDE), "l", "label")
    assert 2 * len(svg) < 600_000
    assert all(f'class="run-{n}"' in svg for n in range(MOST_RUNS))


def test_a_run_that_is_not_ticked_is_hidden_without_a_script() -> None:
    over = many(2, 2)
    svg = draw(chart.laid_over(over, NARROW), "l", "label")
    assert svg.count('class="run-3"') == 2 * len([each for each in panels() if f">{each}<" in svg]) > 0
    assert f">{READ}<" not in svg  # nothing was read
    assert "#runs:has(#pick-3:not(:checked)) .run-3 { display: none; }" in hiding(over)
    assert [[(pick.number, pick.shown) for pick in arm.picks] for arm in picks(over)] == [
        [(0, True), (1, False)],
        [(2, True), (3, False)],
    ]


def test_arms_have_colours_of_their_own_and_the_chart_is_told_in_words() -> None:
    over = many(3, 1)
    assert list(colours(over.runs).values()) == ["ink", "c1", "c2"]
    assert "b1-2 of arm-2: 130 (throughput, /s), 0.500 (CPU, cores)" in chart.in_words(over)
