"""Estimates of time and disk: known answers, and unknown stays unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import pytest

from tare.databases import Database
from tare.plan.datasets import data_sets
from tare.plan.estimate import (
    BYTES_PER_ROW,
    COPY_BYTES_PER_S,
    EMPTY_SERVER_BYTES,
    LOAD_ROWS_PER_S,
    RUN_OVERHEAD_S,
    SERVER_SETUP_S,
    BlockCount,
    DataSet,
    block_count,
    estimate,
    slow_starts,
)
from tare.plan.model import Plan, PlannedRun
from tare.protocols.stopping import Rule
from tare.study.model import Arm, ArmSettings, ClientSpec, Placement, Study, SutSpec
from tare.study.protocol_spec import InterleaveSpec
from tare.workloads import Parameters, Workload


def settings(deployment: str = "container", measure_s: float = 10.0, rows: int = 1000, **more: int) -> ArmSettings:
    return ArmSettings(
        sut=SutSpec(image="i", database="d", deployment=deployment),
        client=ClientSpec(image="i", deployment="bare"),
        workload_name="load",
        workload={
            "warmup_s": 2.0,
            "measure_s": measure_s,
            "window_s": 1.0,
            "cooldown_s": 1.0,
            "rows": rows,
            **more,
        },
    )


def a_plan(*arms: ArmSettings, blocks: int = 2) -> Plan:
    names = [f"arm{n}" for n in range(len(arms))]
    study = Study(
        name="n", scale="full", question="q", source=None, baseline=names[0], factors={"f": tuple(names)},
        arms=tuple(Arm(name=name, levels={"f": name}, settings=arm) for name, arm in zip(names, arms, strict=True)),
        protocol=InterleaveSpec(blocks=blocks), published=(), deviations=(), text="",
    )  # fmt: skip
    runs = [(block, n, name) for block in range(1, blocks + 1) for n, name in enumerate(names)]
    return Plan(
        study=study, seed=0, digest="d",
        runs=tuple(
            PlannedRun(id=f"{block}-{arm}", index=i, block=block, position=n, arm=arm, seed=1)
            for i, (block, n, arm) in enumerate(runs)
        ),
    )  # fmt: skip


def rows_of(arm: ArmSettings) -> DataSet:
    return DataSet(key=str(arm.workload["rows"]), rows=arm.workload["rows"])


def test_time_is_phases_overhead_loads_and_copies() -> None:
    expected = estimate(a_plan(settings("bare"), settings()), rows_of)
    size = EMPTY_SERVER_BYTES + 1000 * BYTES_PER_ROW
    assert expected.block_run_s == 2 * (13.0 + RUN_OVERHEAD_S)
    assert expected.load_s == SERVER_SETUP_S + 1000 / LOAD_ROWS_PER_S
    assert expected.block_copy_s == pytest.approx(2 * size / COPY_BYTES_PER_S)
    assert expected.blocks == BlockCount(2, 2, 2)
    assert expected.total_s == pytest.approx(
        2 * expected.block_run_s + expected.load_s + 4 * size / COPY_BYTES_PER_S
    )


def test_a_run_that_ends_with_its_operations_makes_all_of_it_a_bound() -> None:
    assert estimate(a_plan(settings(), settings(operations=7000)), rows_of).at_most
    assert not estimate(a_plan(settings()), rows_of).at_most


def test_blocks_are_told_as_least_expected_and_most() -> None:
    # At a spread of 1.75 %, 8 blocks reach t(7; 0.9825) * 0.0175 / sqrt(8) = 1.61 %.
    assert block_count(Rule(blocks=40), 60.0) == BlockCount(8, 8, 40)
    assert block_count(Rule(blocks=40, target=0.01), 60.0) == BlockCount(8, 20, 40)
    assert block_count(Rule(blocks=40, target=None), 60.0) == BlockCount(40, 40, 40)


def test_a_cap_on_time_bounds_the_blocks_but_for_the_first() -> None:
    assert block_count(Rule(blocks=40, seconds=600.0), 59.0) == BlockCount(8, 8, 10)
    assert block_count(Rule(blocks=40, seconds=300.0), 59.0) == BlockCount(5, 5, 5)
    assert block_count(Rule(blocks=40, seconds=1.0), 59.0) == BlockCount(1, 1, 1)


def test_arms_that_load_the_same_share_a_snapshot() -> None:
    size = EMPTY_SERVER_BYTES + 1000 * BYTES_PER_ROW
    shared = estimate(a_plan(settings("bare"), settings()), rows_of)
    assert shared.data_sets == 1
    assert shared.disk_bytes == 2 * size


def test_disk_is_every_snapshot_and_the_largest_copy() -> None:
    expected = estimate(a_plan(settings(rows=1000), settings(rows=5000)), rows_of)
    small, large = (EMPTY_SERVER_BYTES + rows * BYTES_PER_ROW for rows in (1000, 5000))
    assert expected.data_sets == 2
    assert expected.disk_bytes == small + large + large


def test_a_size_nobody_can_tell_leaves_disk_and_total_unknown() -> None:
    expected = estimate(a_plan(settings(), settings()), lambda _: DataSet("k", None))
    assert (expected.load_s, expected.block_copy_s, expected.disk_bytes, expected.total_s) == (
        None,
        None,
        None,
        None,
    )
    assert expected.block_run_s == 2 * (13.0 + RUN_OVERHEAD_S)


class FakeLoad:
    """A workload that tells the data set it was made with."""

    def __init__(self, loaded: dict[str, str | int]) -> None:
        self.loaded = loaded

    parameters = Parameters
    needs_database = True

    def dataset(self, parameters: object) -> dict[str, str | int]:
        return self.loaded


@pytest.mark.parametrize(
    ("loaded", "rows"),
    [
        ({"tables": 8, "table_size": 1000, "script": "x"}, 8000),
        ({"record_count": 500}, 500),
        ({"files": 3}, None),
        ({"tables": 8}, None),
    ],
)
def test_rows_are_read_from_what_the_workload_loads(loaded: dict[str, str | int], rows: int | None) -> None:
    plain = settings()
    arm = plain.model_copy(update={"workload": {k: v for k, v in plain.workload.items() if k != "rows"}})
    of = data_sets({"load": cast("Workload[Any]", FakeLoad(loaded))})
    assert of(arm).rows == rows
    assert of(arm).key == of(arm.model_copy(update={"client": Placement(image="j", deployment="bare")})).key


def test_nodes_take_their_own_directories_starts_and_replicas() -> None:
    cluster = settings().model_copy(update={"sut": settings().sut.model_copy(update={"nodes": 3})})
    data = DataSet(key="k", rows=1000, nodes=3, replicas=2)
    assert data.size_bytes == 3 * EMPTY_SERVER_BYTES + 2 * 1000 * BYTES_PER_ROW
    assert data.load_s == 3 * SERVER_SETUP_S + 1000 / LOAD_ROWS_PER_S
    assert estimate(a_plan(cluster), lambda _: data).block_run_s == 13.0 + 3 * RUN_OVERHEAD_S


@dataclass
class Slow:
    """A server or generator of which only this is asked."""

    slow_start_s: float


def test_programs_that_start_slowly_take_their_time_a_node_and_a_process() -> None:
    servers = {"d": Slow(1.5), "other": Slow(100.0)}
    slow = slow_starts(cast("Mapping[str, Database]", servers), {"load": cast("Workload[Any]", Slow(4.0))})
    cluster = settings().model_copy(update={"sut": settings().sut.model_copy(update={"nodes": 3})})
    assert slow(cluster) == 3 * 1.5 + 2 * 4.0
    none = settings().model_copy(update={"sut": settings().sut.model_copy(update={"database": None})})
    assert slow(none) == 2 * 4.0
    assert estimate(a_plan(cluster), rows_of, slow).block_run_s == 13.0 + 3 * RUN_OVERHEAD_S + 12.5
