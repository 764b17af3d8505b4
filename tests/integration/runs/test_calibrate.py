"""Injections on the real engine and kernel: what is put in is in force, and its reading tells it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tare.calibrate.injections import LOG_NAME
from tare.calibrate.kinds import KINDS, bytes_read_per_second, time_not_held_back
from tare.calibrate.studies import DELAY_US, INJECTING, READS_PER_S
from tare.deployments.registry import DEPLOYMENTS
from tare.plan.expand import expand
from tare.record.network_path import Hop
from tare.record.run_record import RunRecord
from tare.run.execute import Destination, execute
from tare.run.local import local_engine, local_machine
from tare.run.resume import StudyState

pytestmark = [pytest.mark.engine, pytest.mark.slow]  # whole studies of the calibration, a minute each

BLOCK_BYTES = 16384


def one_run_each(kind: str, arms: tuple[str, ...], staging: Path) -> dict[str, RunRecord]:
    """The first run of each of these arms of a kind's first study."""
    plan = expand(KINDS[kind].make(1))
    first = tuple(next(run for run in plan.runs if run.arm == arm) for arm in arms)
    plan = plan.model_copy(update={"runs": first})
    with local_engine() as engine:
        machine = local_machine(plan, engine, deployments={**DEPLOYMENTS, **INJECTING})
        kept = execute(plan, machine, Destination("calibrate", StudyState(), staging), lambda _: None)
        records = [record for together in kept for record in together]
    good = {record.arm: record for record in records if record.outcome.ok}
    assert set(good) == set(arms), [record.outcome.reason for record in records]
    return good


def raw_below(staging: Path, record: RunRecord, name: str) -> Path:
    return staging / f"{record.run_id}-{record.attempt}" / name


def test_the_proxy_holds_each_message_back_and_says_so(tmp_path: Path) -> None:
    made = one_run_each("delay", ("passed", "held"), tmp_path)
    free = {arm: time_not_held_back(record, partial(raw_below, tmp_path)) for arm, record in made.items()}
    lines = raw_below(tmp_path, made["held"], LOG_NAME).read_text().splitlines()
    measured = json.loads(lines[-1])
    assert measured["held_ns"] / measured["messages"] >= 1000 * DELAY_US
    assert free["passed"] is not None
    assert free["held"] is not None
    assert free["held"] < free["passed"] <= 1
    assert made["held"].path is not None
    assert made["held"].path.hop is Hop.LOOPBACK


def test_the_kernel_limits_reads_and_its_own_count_tells_it(tmp_path: Path) -> None:
    made = one_run_each("io", ("r1000", "r900"), tmp_path)
    for rate in READS_PER_S:
        read = bytes_read_per_second(made[f"r{rate}"], partial(raw_below, tmp_path))
        assert read is not None
        assert read <= 1.03 * rate * BLOCK_BYTES
        assert read >= 0.5 * rate * BLOCK_BYTES  # a busy disk may be slower than it is let
