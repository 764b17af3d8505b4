"""The metrics: their reference page is written from them, and each has a way to its value."""

from __future__ import annotations

from pathlib import Path

from tests.unit.approved import assert_as_approved

from tare.analyze.derived import DERIVATIONS
from tare.study.metrics import SPECS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "metrics.md"
HEAD = """# Metrics

A metric is one number of each run. Reports compare it between arms, and studies may declare a
[margin](study.md#margins) for it. If the generator separates kinds of operation, each has latencies of its own:
`read_latency_p95`. A metric that a run lacks is missing, never zero. [Estimates](../concepts/estimates.md) says how
metrics are compared.

| metric | unit | meaning | better |
|---|---|---|---|
"""


def test_the_reference_page_has_a_row_for_each_metric() -> None:
    rows = [
        f"| `{spec.name}` | {spec.unit} | {spec.meaning} | {'more' if spec.more_is_better else 'less'} |"
        for spec in SPECS.values()
    ]
    assert_as_approved(HEAD + "\n".join(rows) + "\n", PAGE)


def test_every_metric_is_read_or_derived() -> None:
    assert {name for name, spec in SPECS.items() if not spec.path} <= DERIVATIONS.keys() <= SPECS.keys()
