"""CPU time of what serves an arm's storage is the arm's, and nobody else's."""

from __future__ import annotations

from typing import Any

from tests.unit.analyze import synthetic
from tests.unit.analyze.validity.test_rules import MACHINE, alarms, study, usage


def test_what_serves_an_arms_storage_is_no_stranger() -> None:
    def served(tree: dict[str, Any]) -> None:
        used = 1.0 if tree["arm"] == "bridge" else 0.0
        machine = {**MACHINE, "idle": 2.0, "system": 0.0, "softirq": 0.0, "user": 5.0 + used}
        tree["usage"] = usage(sut_cpu_s=3.0, client_cpu_s=1.0, machine=machine, storage_cpu_s=used or None)

    def forgotten(tree: dict[str, Any]) -> None:
        del tree["usage"]["storage_cpu_s"]

    result = study(change=served)
    assert not [alarm for alarm in alarms(result) if alarm.rule == "machine-shift"]
    untold = [synthetic.changed(run, forgotten) for run in result]
    assert [alarm for alarm in alarms(untold) if alarm.rule == "machine-shift"]
