"""What `make bench-overhead` reads from records, and its table."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze import synthetic

from bench.overhead import SUBJECTS, Times, add_runs, rows
from tare.record.run_record import RunRecord


def run(block: int, arm: str, began_s: float, client: tuple[float, float]) -> RunRecord:
    """A run that began at `began_s`; its client ran during `client` and measured 3 s of it."""

    def alter(tree: dict[str, Any]) -> None:
        tree["phases"] = [{"phase": "provision", "began_at": 1.0, "monotonic_s": began_s, "seconds": 1.0}]
        tree["usage"] = {"began_monotonic_s": client[0], "ended_monotonic_s": client[1]}
        tree["measurement"]["duration_s"] = 3.0
        tree["settings"] = {"sut": {"deployment": arm}}

    return synthetic.changed(synthetic.record(block, arm, 100.0), alter)


def test_time_beside_the_measurement_is_before_the_client_and_until_the_next_run() -> None:
    times = {"bare": Times(), "container": Times()}
    add_runs([run(1, "bare", 10.0, (11.5, 15.0)), run(1, "container", 16.0, (18.0, 21.25))], times)
    bare, container = times["bare"], times["container"]
    assert (bare.before, bare.client, bare.after, bare.beside) == ([1.5], [0.5], [1.0], [2.5])
    assert (container.before, container.client, container.after) == ([2.0], [0.25], []), "no run followed it"


def test_a_run_that_failed_ends_the_benchmark() -> None:
    with pytest.raises(SystemExit, match="failed"):
        add_runs([synthetic.record(1, "bare", None)], {"bare": Times()})


def test_what_counts_is_over_the_server_s_own_start() -> None:
    one = Times(before=[1.5], client=[0.5], after=[1.0], beside=[2.5, 4.0], server=[0.5, 0.25, 1.0], made=[0.1])
    assert one.over == [2.0, 3.5]
    (row,) = rows("mariadb", {"bare": one, "container": Times()})
    assert row == "| mariadb | bare | 1.50 | 1.00 | 0.50 | **2.00** (2.00 to 3.50) | 0.50 | 0.10 |"


@pytest.mark.parametrize("name", SUBJECTS)
def test_each_database_has_a_study_that_can_be_read(name: str) -> None:
    text = SUBJECTS[name].study(name, 7)
    assert f"name: overhead-{name}" in text
    assert "seed: 7" in text
