"""Stages on the real engine: what one stage inserts the next one reads, bare and in a container's own layer."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests import preloaded
from tests.unit.record.parts import as_tree

from tare.store.read import open_store

STUDY = """\
format: 1
name: tiny
question: Does the second stage find what the first has left?
sut:
  image: mariadb
  database: mariadb
  deployment: container
  settings: {{innodb_log_file_buffering: "ON", innodb_log_write_ahead_size: 4096}}   # as below an overlay
client: {{image: {client}, deployment: bare}}
{workload}protocol: {{name: fixed, blocks: 1, control: false}}
factors:
  model:
    sets: [sut.deployment, sut.storage.kind]
    levels:
      bare: {{sut.deployment: bare}}
      layer: {{sut.storage.kind: layer}}
  phase:
{phase}stages: phase
baseline: {{model: bare}}
"""
YCSB = """\
workload: {name: ycsb, threads: 2, measure_s: 3, properties: {fieldcount: 2}}
"""
YCSB_PHASES = """\
    sets: [workload.core_workload, workload.properties.insertproportion, workload.properties.readproportion,
           workload.properties.updateproportion, workload.records, workload.operations, workload.measure_s]
    levels:
      filling:
        workload.properties.insertproportion: 1
        workload.properties.readproportion: 0
        workload.properties.updateproportion: 0
        workload.records: 100
        workload.operations: 900
        workload.measure_s: 60
      asking: {workload.core_workload: b, workload.records: 1000}
"""
TARE_LOAD = """\
workload: {name: tare-load, connections: 2, measure_s: 3, ycsb: {core_workload: b, properties: {fieldcount: 2}}}
"""
TARE_LOAD_PHASES = """\
    sets: [workload.ycsb, workload.measure_s]
    levels:
      filling:
        workload.ycsb:
          records: 100
          operations: 900
          properties: {fieldcount: 2, insertproportion: 1, readproportion: 0, updateproportion: 0}
        workload.measure_s: 60
      asking: {workload.ycsb: {core_workload: b, records: 1000, properties: {fieldcount: 2}}}
"""


@dataclass(frozen=True)
class Generator:
    """A load generator that inserts and then reads; `right`: its word for a good answer."""

    image: str
    workload: str
    phases: str
    right: str


GENERATORS = [
    pytest.param(Generator("tare-load", TARE_LOAD, TARE_LOAD_PHASES, "right"), id="tare-load"),
    pytest.param(Generator("ycsb", YCSB, YCSB_PHASES, "OK"), id="ycsb", marks=pytest.mark.slow),
]


@pytest.mark.engine
@pytest.mark.timeout(600)
@pytest.mark.parametrize("generator", GENERATORS)
def test_the_second_stage_reads_what_the_first_has_inserted(generator: Generator, tmp_path: Path) -> None:
    for image in ("mariadb", generator.image):
        build = [sys.executable, "-m", "tare", "images", "build", image]
        assert preloaded.run(build, timeout=500).returncode == 0
    study = STUDY.format(client=generator.image, workload=generator.workload, phase=generator.phases)
    (tmp_path / "study.yaml").write_text(study)
    command = [sys.executable, "-m", "tare", "run", "study.yaml", "--store", "store", "--format", "json", "--quiet"]
    done = preloaded.run(command, cwd=tmp_path, timeout=400)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["good"] == 4
    records = {
        (each.levels["model"], each.levels["phase"]): each for each in open_store(tmp_path / "store").records()
    }
    for model in ("bare", "layer"):
        filling, asking = records[model, "filling"], records[model, "asking"]
        assert asking.continues == filling.run_id
        assert filling.measurement is not None
        assert asking.measurement is not None
        assert filling.measurement.by_operation["insert"].operations == 900
        read = asking.measurement.by_operation["read"]
        assert {answer: count for answer, count in read.answers.items() if count} == {
            generator.right: read.operations
        }
        started = next(time for time in filling.phases if time.phase == "load")
        assert asking.phases[0].began_at > started.began_at + started.seconds
        for record in (filling, asking):
            assert record.usage is not None
            assert (record.usage.sut_cpu_s or 0) > 0
            assert record.monitors is not None
        mounts = {as_tree(each.parity.sut)["mounts"]["/var/lib/mysql"].split()[0] for each in (filling, asking)}
        assert len(mounts) == 1
        assert (mounts == {"overlay"}) == (model == "layer")
