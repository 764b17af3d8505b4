"""Where an arm's latency went, and which arrivals were never sent."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.analyze.latency_split import Missed, client_share, latency_split_of, missed_of
from tare.record.run_record import RunRecord

PARTS = {"sampled": 9, "lag_ms": 1.0, "waiting_ms": 2.0, "server_ms": 4.0, "unread_ms": 1.0}


def record(**measured: Any) -> RunRecord:
    return synthetic.changed(synthetic.record(0, "bare", 1.0), lambda tree: tree["measurement"].update(measured))


def test_the_client_s_part_is_what_it_sent_late_and_left_unread() -> None:
    assert client_share(record(parts={"p99": PARTS}), "p99") == pytest.approx(2 / 8)


def test_what_was_not_taken_apart_stays_unknown() -> None:
    assert client_share(record(), "p99") is None
    assert client_share(record(parts={"p50": PARTS}), "p99") is None
    assert latency_split_of([record()]) == {}
    assert missed_of([record()]) is None


def test_an_arm_has_the_median_of_its_runs() -> None:
    runs = [record(parts={"p99": {**PARTS, "server_ms": server}}) for server in (4.0, 6.0, 90.0)]
    splits = latency_split_of(runs)
    assert set(splits) == {"p99"}
    assert splits["p99"].server_ms == 6.0
    assert splits["p99"].client == pytest.approx(2 / 10)


def test_missed_arrivals_add_up_over_runs() -> None:
    runs = [record(details={"missed": missed, "scheduled": 100}) for missed in (0, 30)]
    assert missed_of(runs) == Missed(30, 200)
