"""A duet is refused, before anything is started, for what would make its arms disturb each other."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.plan.datasets import data_sets, refuse_io_bound
from tare.plan.expand import expand
from tare.study.protocol_spec import DuetSpec
from tare.study.reading.load import loads
from tare.study.registry import installed
from tare.workloads.registry import WORKLOADS

STUDY = """\
format: 1
name: pair
question: What does a container cost when two run at once?
sut: {image: mariadb, database: mariadb, deployment: container, limits: {memory: 2G}}
client: {image: sysbench, deployment: bare}
workload: {name: sysbench, script: oltp_read_only, table_size: 1000, measure_s: 10}
protocol: {name: duet}
factors:
  around: {levels: {bare: {sut.deployment: bare}, container: {}}}
baseline: bare
"""


def test_a_duet_of_reads_that_fit_into_memory_is_let_through() -> None:
    study = loads(STUDY, installed())
    assert isinstance(study.protocol, DuetSpec)
    plan = expand(study)
    refuse_io_bound(plan, data_sets(WORKLOADS))
    assert len(plan.runs) == 2 * 2 * 40


@pytest.mark.parametrize(
    ("change", "into", "message"),
    [
        (
            "oltp_read_only",
            "oltp_read_write",
            "study.yaml:7:.*does not suit I/O-bound work: oltp_read_write writes",
        ),
        (
            "memory: 2G",
            'cpus: "0"',
            r"sut\.limits\.cpus: a duet places its two arms itself, on the CPUs 0 and 1",
        ),
        ("memory: 2G", "cpu_quota: 1.5", "has 1 of the CPUs, so a quota of 1.5 would limit nothing"),
        (
            "limits: {memory: 2G}",
            "storage: {kind: block, device: /dev/sdz}",
            r"sut\.storage\.device: both arms of a duet run at once and cannot both have their data on /dev/sdz",
        ),
        (
            "limits: {memory: 2G}",
            "storage: {kind: nfs}",
            r"sut\.storage\.kind: an NFS server uses CPUs outside both sets",
        ),
        ("measure_s: 10", "measure_s: 4", "4 s hold fewer than 5 windows of 1 s"),
        ("{name: duet}", '{name: duet, cpus: ["0", "0-1"]}', "CPU 0 is in both sets"),
        ("{name: duet}", '{name: duet, cpus: ["0", "1-2"]}', "the sets have 1 and 2 CPUs"),
        ("{name: duet}", "{name: duet, sequence: spread}", "unknown key"),
        (
            "image: sysbench, deployment: bare",
            "image: sysbench, deployment: bare, cgroup: root",
            "cannot be pinned to CPUs",
        ),
    ],
)
def test_what_would_disturb_the_other_arm_is_refused_when_the_study_is_read(
    change: str, into: str, message: str
) -> None:
    with pytest.raises(StudyError, match=message):
        loads(STUDY.replace(change, into, 1), installed())


def test_fileio_is_refused_for_what_it_is() -> None:
    program = STUDY.replace(
        "name: sysbench, script: oltp_read_only, table_size: 1000", "name: sysbench-fileio, file_test_mode: rndrd"
    )
    program = program.replace("client: {image: sysbench, deployment: bare}\n", "").replace(
        "image: mariadb, database: mariadb,", "image: sysbench,"
    )
    with pytest.raises(StudyError, match="fileio only uses the disk"):
        loads(program, installed())


def test_data_that_do_not_fit_into_memory_are_refused_when_the_plan_is_made() -> None:
    plan = expand(loads(STUDY.replace("table_size: 1000", "table_size: 100_000_000"), installed()))
    with pytest.raises(StudyError, match="may use 2048 MiB of memory, and its data take about") as refused:
        refuse_io_bound(plan, data_sets(WORKLOADS))
    assert refused.value.hint == "raise sut.limits.memory, load less data, or use `interleave`"


def test_one_set_of_cpus_is_one_too_few() -> None:
    with pytest.raises(StudyError, match=r"study.yaml:7:.* protocol.cpus: the list is too short: entry 2"):
        loads(STUDY.replace("{name: duet}", '{name: duet, cpus: ["0"]}'), installed())
