"""Workloads without a database on the real machine: sysbench's cpu and fileio, and fio, bare and in a container."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests import preloaded
from tests.unit.record.parts import as_tree

from tare.store.read import open_store

STUDY = """\
format: 1
name: tiny
question: Does it run?
sut:
  image: IMAGE
  deployment: container
  limits: {cpus: "0", memory: 256M}
workload: WORKLOAD
protocol: {name: fixed, blocks: 1, control: false}
factors:
  placed:
    sets: sut.deployment
    levels: [bare, container]
baseline: bare
"""
WORKLOADS = {
    "cpu": "{name: sysbench-cpu, cpu_max_prime: 4000, warmup_s: 1, measure_s: 1}",
    "fileio": (
        "{name: sysbench-fileio, file_test_mode: rndrw, file_num: 2, file_total_size: 8M, file_extra_flags: direct,"
        " warmup_s: 1, measure_s: 1}"
    ),
    "fio": "{name: fio, rw: randrw, size: 8M, numjobs: 2, fsync: 4, direct: true, warmup_s: 1, measure_s: 2}",
}
IMAGES = {"fio": "fio"}


@pytest.fixture
def image(workload: str) -> str:
    """Built beforehand, as that may take minutes the first time."""
    name = IMAGES.get(workload, "sysbench")
    command = [sys.executable, "-m", "tare", "images", "build", name]
    assert preloaded.run(command, timeout=600).returncode == 0
    return name


@pytest.mark.engine
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "workload",
    ["cpu", "fileio", pytest.param("fio", marks=pytest.mark.slow)],  # no other test needs fio's image
)
def test_a_program_is_its_own_sut_bare_and_in_a_container(workload: str, image: str, tmp_path: Path) -> None:
    study = STUDY.replace("WORKLOAD", WORKLOADS[workload]).replace("IMAGE", image)
    (tmp_path / "study.yaml").write_text(study)
    command = [sys.executable, "-m", "tare", "run", "study.yaml", "--store", "store", "--format", "json", "--quiet"]
    done = preloaded.run(command, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["good"] == 2
    for record in open_store(tmp_path / "store").records():
        assert record.parity.client is None
        seen = as_tree(record.parity.sut)
        assert seen["cpus_allowed"] == "0"
        assert seen["memory_bytes"] == 256 << 20
        assert record.usage is not None
        assert 0 < (record.usage.sut_cpu_s or 0) <= 1.05 * (record.usage.sut_over_s or 0)
        assert (record.snapshot is None) == (workload == "cpu")
        if workload != "cpu":
            assert seen["mounts"]["/data"] != "overlay"
        if workload == "fio":
            assert record.measurement is not None
            assert set(record.measurement.by_operation) == {"read", "write", "fsync"}
    digests = {as_tree(record.parity.sut)["binary_digest"] for record in open_store(tmp_path / "store").records()}
    assert len(digests) == 1
