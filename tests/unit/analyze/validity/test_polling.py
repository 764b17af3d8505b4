"""A client that polls until arrivals are due takes CPU time without being busy."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.analyze.validity.load import busy, limit_reached

TRACED = {"saturation": {"client": {"cpus": 2.0, "busy": 0.95}, "sut": {"cpus": 1.0, "busy": 0.95}}}
COUNTED = {"client_cpu_s": 19.0, "client_cpus": 2.0, "monotonic_s": 10.0}


@pytest.mark.parametrize("usage", [TRACED, COUNTED], ids=["traced", "counted"])
def test_what_is_polled_is_not_busy(usage: dict[str, Any]) -> None:
    def polls(tree: dict[str, Any]) -> None:
        tree["usage"] = usage
        tree["measurement"].update(duration_s=10.0, details={"client_polled_s": 8.0})

    run = synthetic.record(0, "bare", 1900.0)
    assert busy(synthetic.changed(run, polls), "client") == pytest.approx(0.95 - 8.0 / 20.0)
    assert not limit_reached(synthetic.changed(run, polls), "client")
    assert limit_reached(synthetic.changed(run, lambda tree: tree.update(usage=usage)), "client")


def test_what_is_polled_in_turns_is_a_share_of_the_turns() -> None:
    def polls(tree: dict[str, Any]) -> None:
        tree["usage"] = {**TRACED, "turns_s": 5.0}
        tree["measurement"].update(duration_s=20.0, details={"client_polled_s": 4.0})

    run = synthetic.changed(synthetic.record(0, "bare", 1900.0), polls)
    assert busy(run, "client") == pytest.approx(0.95 - 4.0 / 10.0)
