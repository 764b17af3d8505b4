"""What the rules find in duets: CPU sets that differ, and nothing in that they are swapped."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tests.unit.analyze import synthetic
from tests.unit.analyze.validity.test_rules import alarms, only, study
from tests.unit.record.parts import as_tree, with_parts

from tare.record.run_record import RunRecord
from tare.record.swap_halves import windows_kept


def duets(factor: float, blocks: int = 12, noise: float = 0.01) -> list[RunRecord]:
    """Two arms at once, that change CPUs 0 and 1 half-way; CPU 1 is `factor` as fast, second halves 5 % slower."""
    rng = np.random.default_rng(3)

    def with_slot(run: RunRecord) -> RunRecord:
        cpus = ["0", "1"] if run.position == 0 else ["1", "0"]
        speed = {"0": 1.0, "1": factor}
        rates = [1900 * speed[cpu] * (1 - 0.05 * n) * math.exp(rng.normal(0, noise)) for n, cpu in enumerate(cpus)]
        halves = [{"windows": 9, "throughput_per_s": rate} for rate in rates]
        return with_parts(run, duet={"partner": "other", "cpus": cpus, "halves": halves})

    return [with_slot(run) for run in study(blocks)]


def test_a_cpu_set_that_is_faster_is_found_by_the_halves_of_a_duet() -> None:
    alarm = only(duets(1.06, noise=1e-4), "core-effect")
    assert alarm.arm is None
    assert "on CPUs 0 throughput is 5.7 % slower than on CPUs 1" in alarm.what
    assert len(alarm.runs) == 24


def test_a_slower_second_half_is_no_core_effect() -> None:
    assert not [alarm for alarm in alarms(duets(1.0)) if alarm.rule == "core-effect"]
    assert not [alarm for alarm in alarms(duets(1.005)) if alarm.rule == "core-effect"]


def swapped(*rates: float, step: float = 1.0) -> list[RunRecord]:
    """Duets of 60 windows, of which 1 to 29 and 31 to 58 count: those before and after the swap have these rates.

    What does not count is far off. `step`: by what the last 14 that count of one run are faster.
    """

    def lay(tree: dict[str, Any]) -> None:
        rippled = [1 + 1e-3 * (n * 7 % 11 - 5) for n in range(60)]
        levels = [rates[n > 30] * each for n, each in enumerate(rippled)]
        late = step if tree["block"] == 5 and tree["arm"] == "bare" else 1.0
        results = [level * (late if n > 44 else 1.0) for n, level in enumerate(levels)]
        tree["measurement"]["windows"] = [
            {"end_s": n + 1.0, "throughput_per_s": 9e5 if n in {0, 30, 59} else rate}
            for n, rate in enumerate(results)
        ]
        tree["duet"] = {
            "partner": "other", "started_s": 99.0,
            "began_from_s": 100.0, "began_until_s": 100.2, "both_from_s": 100.3,
            "swap_began_s": 130.5, "swap_ended_s": 130.6, "both_until_s": 159.8,
            "halves": [{"windows": 31 - n, "throughput_per_s": rate} for n, rate in enumerate(rates, 2)],
        }  # fmt: skip

    return study(length=60, change=lay)


def test_of_a_duet_the_windows_that_count_are_told_by_the_record() -> None:
    run = swapped(1900.0, 1500.0)[0]
    first, second = windows_kept(run) or ([], [])
    assert [window.end_s for window in (first[0], first[-1], second[0], second[-1])] == [2.0, 30.0, 32.0, 59.0]
    assert windows_kept(synthetic.records()[0]) is None
    older = {key: value for key, value in as_tree(run.duet).items() if not key.startswith("began")}
    first, second = windows_kept(with_parts(run, duet=older)) or ([], [])
    assert [window.end_s for window in (first[0], first[-1], second[0], second[-1])] == [3.0, 31.0, 33.0, 60.0]


def test_that_a_duet_swaps_its_cpus_is_no_change_of_throughput() -> None:
    assert not [alarm for alarm in alarms(swapped(1900.0, 1500.0)) if alarm.rule == "change-point"]
    results = [alarm for alarm in alarms(swapped(1900.0, 1500.0, step=1.2)) if alarm.rule == "change-point"]
    assert [alarm.runs[0].split("-")[0] for alarm in results] == ["b05"]
