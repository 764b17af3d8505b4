"""Tables of a trace become readings: who, when, what."""

from __future__ import annotations

import polars as pl
from tests.unit.analyze.views.traces import MIB, S, readings, trace

from tare.analyze.views.readings import READINGS, cgroup_cpu, cgroup_memory, every, host_cpu, interfaces, sandboxes
from tare.store.trace import Trace


def test_docker_s_ticks_leave_steal_out() -> None:
    assert set(cgroup_cpu(trace(steal=10))["system_ticks"].diff().drop_nulls()) == {90}


def test_without_the_host_cpu_time_of_groups_is_still_there() -> None:
    whole = trace()
    alone = Trace(whole.header, whole.quanta, True, {"cgroup": whole.tables["cgroup"]})
    assert len(cgroup_cpu(alone)) == 9
    assert cgroup_cpu(alone)["system_ticks"].null_count() == 9


def test_a_group_is_joined_only_with_host_readings_of_its_own_tick() -> None:
    whole = trace()
    seldom = {**whole.tables, "cpu": whole.tables["cpu"].filter(pl.col("tick") % 4 == 0)}
    assert cgroup_cpu(Trace(whole.header, whole.quanta, True, seldom))["at_ns"].to_list() == [0, 2 * S, 4 * S]


def test_a_limit_is_carried_on_and_never_above_the_machine() -> None:
    assert set(cgroup_memory(trace())["limit_bytes"]) == {200 * MIB}
    whole = trace()
    unlimited = whole.tables["cgroup"].with_columns(pl.lit(None, pl.Int64).alias("memory_limit_bytes"))
    tables = {**whole.tables, "cgroup": unlimited}
    assert set(cgroup_memory(Trace(whole.header, whole.quanta, True, tables))["limit_bytes"]) == {1000 * MIB}


def test_before_the_first_reading_of_a_cut_the_limit_is_the_one_read_next() -> None:
    whole = trace()
    later = pl.col("limit_t0_ns", "memory_limit_bytes").shift(3)
    tables = {**whole.tables, "cgroup": whole.tables["cgroup"].with_columns(later)}
    assert set(cgroup_memory(Trace(whole.header, whole.quanta, True, tables))["limit_bytes"]) == {200 * MIB}


def test_a_limit_that_was_taken_away_is_not_carried_on() -> None:
    whole = trace()
    until = pl.when(pl.col("tick") < 4).then("memory_limit_bytes")
    tables = {**whole.tables, "cgroup": whole.tables["cgroup"].with_columns(until.alias("memory_limit_bytes"))}
    limits = cgroup_memory(Trace(whole.header, whole.quanta, True, tables))["limit_bytes"].to_list()
    assert limits == [200 * MIB] * 4 + [1000 * MIB] * 5


def test_all_is_the_sum_of_the_cpus() -> None:
    cpus = host_cpu(trace())
    ends = cpus.filter(pl.col("subject") == "all")["user_ticks"]
    assert ends.to_list()[:2] == [0, 30]


def test_a_sandbox_is_its_interfaces_without_loopback_and_the_host_is_apart() -> None:
    assert sandboxes(trace())["rx_bytes"].to_list()[:2] == [0, 1024]
    assert set(interfaces(trace())["subject"]) == {"eth0"}


def test_every_takes_the_reading_nearest_to_each_turn() -> None:
    jittered = readings([0.0, 0.48, 1.02, 1.5, 1.97, 3.4], usage_ns=list(range(6)))
    assert every(jittered, 1.0)["usage_ns"].to_list() == [0, 2, 4, 5]
    assert every(jittered, 0.5)["usage_ns"].to_list() == [0, 1, 2, 3, 4, 5]


def test_an_empty_trace_gives_no_readings() -> None:
    nothing = Trace(trace().header, {}, True, {})
    assert all(read(nothing).is_empty() and every(read(nothing), 1.0).is_empty() for read in READINGS.values())
