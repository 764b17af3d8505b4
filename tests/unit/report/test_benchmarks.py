"""Runs in the formats of benchstat and OpenMetrics."""

from __future__ import annotations

import re

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests.unit.analyze import synthetic

from tare.analyze.metrics import PRIMARY, metric_named
from tare.report.frames.benchmarks import as_benchstat, as_openmetrics
from tare.report.frames.observations import observations

RUNS = synthetic.records()
FRAME = observations(synthetic.study(), RUNS)
THROUGHPUTS = {run.run_id: metric_named(PRIMARY).of(run) for run in RUNS if run.outcome.ok}


def test_benchstat_has_a_line_for_each_run_with_every_metric() -> None:
    lines = [line for line in as_benchstat(FRAME).splitlines() if line.startswith("Benchmark")]
    assert len(lines) == len(THROUGHPUTS)
    name, times, *cells = lines[0].split(" ")
    assert re.fullmatch(r"Benchmark[A-Z]\w*/arm=[\w.-]+(?:/[\w.-]+=[\w.%+-]+)*", name)
    assert times == "1"
    assert len(cells) % 2 == 0
    values = [float(line.split(" ")[2]) for line in lines]
    assert sorted(values) == sorted(value for value in THROUGHPUTS.values() if value is not None)


def test_benchstat_says_which_way_is_better() -> None:
    better = dict(line.split()[1:] for line in as_benchstat(FRAME).splitlines() if line.startswith("Unit "))
    assert better["throughput-transactions_per_s"] == "better=higher"
    assert better["latency_p95-ms"] == "better=lower"


def test_openmetrics_is_read_by_the_client_of_prometheus() -> None:
    text = as_openmetrics(FRAME)
    parsed = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]  # prometheus_client is typed in part
    families = {family.name: family for family in parsed}
    samples = families["tare_throughput"].samples
    assert {sample.labels["run_id"]: sample.value for sample in samples} == pytest.approx(THROUGHPUTS)
    assert families["tare_throughput"].type == "gauge"
    assert {sample.labels["arm"] for sample in samples} == {run.arm for run in RUNS}
