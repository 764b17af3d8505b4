"""How full a system was: told where the record can tell it, and unknown where it cannot."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.knowledge.benchmark import BaselineLoad, load_of
from tare.record.run_record import RunRecord

IDLE = {"user": 10.0, "idle": 88.0, "iowait": 1.0, "steal": 1.0}
UNKNOWN = BaselineLoad(None, None)


def run(
    *,
    sut: float | None = None,
    client: float | None = None,
    threads: int = 16,
    delivered: float | None = None,
    machine: dict[str, float] = IDLE,
    program: bool = False,
    waiting: float | None = None,
    throttled: float | None = None,
) -> RunRecord:
    """`sut`, `client`: the part of the CPU time of four CPUs that each used."""

    def change(tree: dict[str, Any]) -> None:
        saturation = {
            "sut": {"cpus": 4.0, "busy": sut, "waiting": waiting, "throttled": throttled},
            "client": {"cpus": 4.0, "busy": client, "waiting": None, "throttled": None},
        }
        tree["usage"] = {"monotonic_s": 10.0, "sut_cpus": 4.0, "machine": machine, "saturation": saturation}
        tree["settings"] = {"client": None if program else {}, "workload": {"threads": threads}}
        if delivered is not None:
            tree["measurement"]["details"] = {"target_per_s": 100.0, "delivered_share": delivered}

    return synthetic.changed(synthetic.record(1, "bare", 1000.0), change)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (run(sut=0.95), BaselineLoad("full", "cpu")),
        (run(sut=0.95, waiting=0.9), BaselineLoad("full", "cpu")),
        (run(sut=0.5, throttled=0.8), BaselineLoad("full", "cpu")),
        (run(sut=0.02, waiting=0.9, threads=1), UNKNOWN),
        (run(sut=0.95, threads=2, program=True), BaselineLoad("medium", "cpu")),
        (run(sut=0.95, threads=4, program=True), BaselineLoad("full", "cpu")),
        (run(sut=0.5, client=0.5, delivered=0.9), BaselineLoad("full", None)),
        (run(sut=0.5, client=0.95, delivered=0.9), UNKNOWN),
        (run(sut=0.5, delivered=0.9), UNKNOWN),
        (run(sut=0.2, delivered=1.0), BaselineLoad("light", None)),
        (run(sut=0.5, delivered=1.0), BaselineLoad("medium", None)),
        (run(sut=0.5, delivered=1.0, machine={**IDLE, "iowait": 20.0}), UNKNOWN),
        (run(sut=0.5, threads=1), BaselineLoad("light", None)),
        (run(sut=0.5, threads=3), BaselineLoad("medium", None)),
        (run(sut=0.5, threads=3, machine={}), UNKNOWN),
        (run(sut=0.5, threads=16), UNKNOWN),
        (run(), UNKNOWN),
    ],
)
def test_the_rule_tells_what_a_record_can(of: RunRecord, expected: BaselineLoad) -> None:
    assert load_of([of]) == expected


def test_runs_have_to_agree_by_more_than_half() -> None:
    full, other = run(sut=0.95), run(sut=0.5)
    assert load_of([full, full, other]) == BaselineLoad("full", "cpu")
    assert load_of([full, other]) == UNKNOWN
    assert load_of([]) == UNKNOWN
