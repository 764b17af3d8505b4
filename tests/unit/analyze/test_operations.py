"""Latencies of single kinds of operations are metrics of their own."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.analyze import analyze
from tare.analyze.metrics import METRICS, metric_named, metrics_of
from tare.record.run_record import RunRecord
from tare.report import EXPORTERS
from tare.report.content import build_report
from tare.study.model import Published

ARMS = ("bare", "bridge")


def with_operations(record: RunRecord, *kinds: str) -> RunRecord:
    def change(tree: dict[str, Any]) -> None:
        whole = tree["measurement"]
        factor = {"read": 1.0, "update": 2.0}
        whole["by_operation"] = {
            kind: {
                "operations": whole["operations"] // len(kinds),
                "errors": 0,
                "latency": {**whole["latency"], "mean_ms": factor[kind] * whole["latency"]["mean_ms"]},
            }
            for kind in kinds
        }

    return synthetic.changed(record, change)


def test_each_kind_of_operation_is_compared_by_itself() -> None:
    records = [with_operations(each, "read", "update") for each in synthetic.records(ARMS)]
    analysis = analyze(synthetic.study(ARMS), records)
    read, whole = analysis.finding("bridge", "read_latency_mean"), analysis.finding("bridge", "latency_mean")
    assert read.estimate == whole.estimate
    value = {name: analysis.arms[0].values[f"{name}_latency_mean"].median for name in ("read", "update")}
    assert value["read"]
    assert value["update"] == pytest.approx(2 * value["read"])


def test_a_published_figure_of_one_kind_stands_beside_it() -> None:
    figure = Published(levels={"path": "bridge"}, metric="update_latency_mean", relative=0.12, where="table 3")
    records = [with_operations(each, "read", "update") for each in synthetic.records(ARMS)]
    analysis = analyze(synthetic.study(ARMS, published=(figure,)), records)
    assert analysis.finding("bridge", "update_latency_mean").published == 0.12
    assert analysis.finding("bridge", "read_latency_mean").published is None


def test_one_kind_alone_is_all_operations_together_and_told_once() -> None:
    records = [with_operations(each, "read") for each in synthetic.records(ARMS)]
    assert metrics_of(records) == tuple(METRICS.values()) == analyze(synthetic.study(ARMS), records).metrics


def test_a_run_without_one_of_the_kinds_drops_its_block_only() -> None:
    first, *rest = [with_operations(each, "read", "update") for each in synthetic.records(ARMS)]
    analysis = analyze(synthetic.study(ARMS), [with_operations(first, "read"), *rest])
    assert analysis.finding("bridge", "read_latency_mean").estimate.n == 5
    assert analysis.finding("bridge", "update_latency_mean").estimate.n == 4
    assert analysis.finding("bridge", "update_latency_mean").dropped[0].block == first.block


@pytest.mark.parametrize("name", ["read_throughput", "_latency_mean", "latency_p42", ""])
def test_what_is_no_metric_has_no_name(name: str) -> None:
    with pytest.raises(KeyError):
        metric_named(name)


def test_names_with_hyphens_are_of_an_operation_too() -> None:
    metric = metric_named("read-modify-write_latency_p99")
    assert metric.operation == "read-modify-write"
    assert metric.path == ("by_operation", "read-modify-write", "latency", "p99_ms")


@pytest.mark.parametrize("style", ["terminal", "md", "html", "csv", "json"])
def test_every_report_tells_of_each_kind(style: str) -> None:
    records = [with_operations(each, "read", "update") for each in synthetic.records(ARMS)]
    text = EXPORTERS[style](build_report(synthetic.study(ARMS), records))
    wanted = {"csv": "update_latency_mean", "json": "update_latency_mean"}.get(style, "update")
    assert wanted in text
