"""The table of `make bench-agent`."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from bench.agent.__main__ import Costs, table, timed
from bench.agent.ansible import inventory, playbook
from bench.agent.own_time import own_time
from bench.agent.own_time import table as own_times
from bench.agent.round_trips import Call, Seen, Stretch, rows
from bench.agent.round_trips import table as round_trips
from tare.run.record import Phase
from tare.sites.file import SshSpec


def test_the_table_names_every_cost_and_the_goal_where_the_round_trip_is_known() -> None:
    costs = Costs(412.3, 0.21, 0.25, 0.61, 2.5, 291.0, 95.4, 0.0005, 60.0, 3.2)
    shown = table(costs, 200)
    assert "| read of a small file | 0.250 ms (goal: 0.60), 99th percentile 0.610 ms |" in shown
    assert "| agent's CPU while idle | 0.050 % of one (steps of 0.017 %) |" in shown
    assert "| `true` by a kept SSH connection | 95 ms |" in shown
    assert "goal" not in table(costs, None)


def test_ansible_is_told_where_it_was_asked_for() -> None:
    costs = Costs(412.3, 0.21, 0.25, 0.61, 2.5, 291.0, 95.4, 0.0005, 60.0, 3.2)
    assert "| 10 commands by Ansible | not tried |" in table(costs, None)
    assert "| 10 commands by Ansible | 8.3 s |" in table(replace(costs, ansible_s=8.3), None)


def test_ansible_reaches_the_host_as_tare_does() -> None:
    spec = SshSpec(ssh="root@far", ssh_config="/etc/lab")
    assert inventory(spec).startswith("root@far ansible_ssh_common_args='-F /etc/lab' ")
    assert playbook(10).count("ansible.builtin.command") == 10


def test_a_run_s_own_time_is_held_against_that_of_one_machine() -> None:
    phases = [SimpleNamespace(seconds=seconds) for seconds in (2.0, 1.0, 2.5, 1.5)]
    assert own_time(cast("Any", SimpleNamespace(phases=phases))) == 4.0
    assert "1.25 times that of one machine (goal: 1.5)" in own_times([4.0, 4.0], [5.0])


def test_each_call_is_timed() -> None:
    called: list[int] = []
    assert len(timed(lambda: called.append(1), 3)) == len(called) == 3


def seen_of(*calls: tuple[float, float]) -> Seen:
    """Calls of two runs, each of a provision that begins at 0 or 10 and a teardown at 5 or 15."""
    stretches = [
        Stretch(phase, base + began, base + began + 5)
        for base in (0.0, 10.0)
        for phase, began in ((Phase.PROVISION, 0.0), (Phase.TEARDOWN, 5.0))
    ]
    made = [Call("far", "read /x", base + began, base + ended) for base in (0.0, 10.0) for began, ended in calls]
    return Seen(made, stretches)


def test_calls_that_overlap_are_one_turn() -> None:
    provision, teardown = rows(seen_of((0.0, 1.0), (0.5, 2.0), (3.0, 3.5), (6.0, 6.5)))
    assert (provision.calls, provision.turns, provision.waited_s) == (3, 2, 2.5)
    assert (teardown.phase, teardown.calls, teardown.turns, teardown.seconds) == (Phase.TEARDOWN, 1, 1, 5.0)
    shown = round_trips(rows(seen_of((0.0, 1.0))), rows(seen_of((0.0, 1.0), (0.5, 2.0), (6.0, 6.5))))
    assert "| provision | 5.00 | 1 | 5.00 | 2 | 1 | 2.00 |" in shown
    assert "Beside warm-up and measurement: 3 calls in 2 turns" in shown
