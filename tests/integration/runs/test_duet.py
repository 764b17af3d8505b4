"""A duet of MariaDB bare and in a container on the real machine: together, on CPUs of their own, swapped."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.record.parts import as_tree

from tare.plan.expand import expand
from tare.record.run_record import RunRecord
from tare.record.swap_halves import throughput_of
from tare.run.execute import Destination, execute
from tare.run.local import local_engine, local_machine
from tare.run.resume import StudyState
from tare.study.reading.load import loads
from tare.study.registry import installed

pytestmark = pytest.mark.engine

STUDY = """\
format: 1
name: duet
question: What does a container cost beside its like?
sut:
  image: mariadb
  database: mariadb
  deployment: container
  limits: {memory: 512M}
  settings: {innodb_buffer_pool_size: 64M, innodb_log_file_size: 8M}
client: {image: sysbench, deployment: bare}
workload: {name: sysbench, script: oltp_point_select, table_size: 1000, threads: 2, warmup_s: 2, measure_s: 10}
protocol: {name: duet, blocks: 1, retries: 0, seed: 2}
factors:
  around:
    sets: [sut.deployment]
    levels: {bare: {sut.deployment: bare}, boxed: {}}
baseline: bare
"""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[RunRecord]:
    """Those of one block of each arm."""
    staging = tmp_path_factory.mktemp("staging")
    plan = expand(loads(STUDY, installed()))
    with local_engine() as engine:
        machine = local_machine(plan, engine)
        kept = [*execute(plan, machine, Destination(str(staging), StudyState(), staging), lambda _: None)]
    assert [len(together) for together in kept] == [2, 2]
    return [record for together in kept for record in together]


def sets(record: RunRecord) -> tuple[Any, Any, Any]:
    """Where the server stood before, where it stood afterwards, and where the client began."""
    before, after, client = record.parity.sut, record.parity.sut_after, record.parity.client
    return before and before.cpus_allowed, after and after.cpus_allowed, client and client.cpus_allowed


def test_both_arms_are_good_and_each_is_with_the_baseline(records: list[RunRecord]) -> None:
    assert all(record.outcome.ok for record in records), [record.outcome.reason for record in records]
    pairs = [{record.arm for record in records if record.block == block} for block in (1, 2)]
    assert sorted(pairs, key=sorted) == [{"bare", "baseline-again"}, {"bare", "boxed"}]


def test_the_kernel_shows_each_on_its_own_cpu_and_on_the_others_afterwards(records: list[RunRecord]) -> None:
    for record in records:
        first, second = ("0", "1") if record.position == 0 else ("1", "0")
        assert sets(record) == (first, second, first)


def test_both_were_loaded_at_the_same_time(records: list[RunRecord]) -> None:
    for first, second in ((records[0], records[1]), (records[2], records[3])):
        assert first.duet is not None
        assert second.duet is not None
        assert as_tree(first.duet)["both_from_s"] == as_tree(second.duet)["both_from_s"]
        together = as_tree(first.duet)["both_until_s"] - as_tree(first.duet)["both_from_s"]
        assert together > 8.0
        assert 0 < as_tree(first.duet)["swap_ended_s"] - as_tree(first.duet)["swap_began_s"] < 1.0


def test_each_half_has_windows_and_a_rate(records: list[RunRecord]) -> None:
    for record in records:
        assert record.duet is not None
        assert all(half.windows >= 1 for half in record.duet.halves or ())
        rates = record.duet.rates
        assert rates is not None
        assert min(rates) > 0
        assert throughput_of(record) == pytest.approx((rates[0] * rates[1]) ** 0.5)
