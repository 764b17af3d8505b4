"""Stacks of two hosts: what the client's host adds, and what is counted once where both are one machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tare.analyze.explain.sampled import CpuSide, Sampled, between_hosts

SERVER = Sampled(
    seconds=10.0,
    cpu_s={(CpuSide.SERVER, "copying"): 4.0, (CpuSide.OTHER, "copying"): 3.0, (CpuSide.SOFTIRQ, "tcp"): 1.0},
    stacks={(CpuSide.SERVER, "mariadbd;read"): 4.0},
    lost=0.0,
    idle_s=12.0,
    cpus=2,
)
CLIENT = Sampled(
    seconds=5.0,
    cpu_s={(CpuSide.CLIENT, "copying"): 1.0, (CpuSide.SOFTIRQ, "tcp"): 0.5},
    stacks={(CpuSide.CLIENT, "sysbench;write"): 1.0},
    lost=0.0,
    idle_s=3.5,
    cpus=1,
)


def test_the_client_s_host_adds_its_cpus_and_all_that_ran_on_them() -> None:
    both = between_hosts(SERVER, CLIENT, one=False)
    assert both.cpu_s[CpuSide.CLIENT, "copying"] == pytest.approx(2.0)
    assert both.cpu_s[CpuSide.SOFTIRQ, "tcp"] == pytest.approx(2.0)
    assert both.cpu_s[CpuSide.OTHER, "copying"] == 3.0
    assert both.stacks[CpuSide.CLIENT, "sysbench;write"] == pytest.approx(2.0)
    assert both.idle_s == pytest.approx(19.0)
    assert both.cpus == 3
    assert sum(both.cpu_s.values()) + both.idle_s == pytest.approx(both.cpus * both.seconds)


def test_one_machine_is_counted_once() -> None:
    both = between_hosts(SERVER, CLIENT, one=True)
    assert both.cpu_s[CpuSide.CLIENT, "copying"] == pytest.approx(2.0)
    assert both.cpu_s[CpuSide.OTHER, "copying"] == pytest.approx(1.0)
    assert both.cpu_s[CpuSide.SOFTIRQ, "tcp"] == 1.0
    assert (both.idle_s, both.cpus) == (12.0, 2)
    assert sum(both.cpu_s.values()) == pytest.approx(sum(SERVER.cpu_s.values()))


def test_samples_that_were_lost_there_are_made_up_for() -> None:
    assert between_hosts(SERVER, replace(CLIENT, lost=0.5), one=True).cpu_s[CpuSide.CLIENT, "copying"] == 4.0
