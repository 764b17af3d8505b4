"""The table of `make bench-agent`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from bench.agent.__main__ import Costs, table, timed
from bench.agent.own_time import own_time
from bench.agent.own_time import table as own_times


def test_the_table_names_every_cost_and_the_goal_where_the_round_trip_is_known() -> None:
    costs = Costs(412.3, 0.21, 0.25, 0.61, 2.5, 291.0, 95.4, 0.0005, 60.0, 3.2)
    shown = table(costs, 200)
    assert "| read of a small file | 0.250 ms (goal: 0.60), 99th percentile 0.610 ms |" in shown
    assert "| agent's CPU while idle | 0.050 % of one (steps of 0.017 %) |" in shown
    assert "| `true` by a kept SSH connection | 95 ms |" in shown
    assert "goal" not in table(costs, None)


def test_a_run_s_own_time_is_held_against_that_of_one_machine() -> None:
    phases = [SimpleNamespace(seconds=seconds) for seconds in (2.0, 1.0, 2.5, 1.5)]
    assert own_time(cast("Any", SimpleNamespace(phases=phases))) == 4.0
    assert "1.25 times that of one machine (goal: 1.5)" in own_times([4.0, 4.0], [5.0])


def test_each_call_is_timed() -> None:
    called: list[int] = []
    assert len(timed(lambda: called.append(1), 3)) == len(called) == 3
