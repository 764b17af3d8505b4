"""Where the output of a container and the log of a server go."""

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
name: logs
question: What does the log cost?
sut: {image: mariadb, database: mariadb, deployment: container, limits: {cpus: "0"}}
client: {image: sysbench, deployment: bare, limits: {cpus: "0"}}
workload: {name: sysbench, script: oltp_read_only, tables: 1, table_size: 200, threads: 2, measure_s: 8}
protocol: {name: fixed, blocks: 1, control: false}
factors:
  log:
    sets: [sut.log_driver, sut.log_target]
    levels:
      json: {}
      compact: {sut.log_driver: local}
      nowhere: {sut.log_driver: none}
      file: {sut.log_target: file}
baseline: json
"""
READY = b"ready for connections"


@pytest.mark.engine
@pytest.mark.timeout(900)
def test_output_goes_to_the_log_driver_and_a_log_to_its_file(tmp_path: Path) -> None:
    for each in ("mariadb", "sysbench"):
        build = [sys.executable, "-m", "tare", "images", "build", each]
        assert preloaded.run(build, timeout=500).returncode == 0
    (tmp_path / "study.yaml").write_text(STUDY)
    command = [sys.executable, "-m", "tare", "run", "study.yaml", "--store", "store", "--format", "json", "--quiet"]
    done = preloaded.run(command, cwd=tmp_path, timeout=400)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["good"] == 4
    for record in (each for each in open_store(tmp_path / "store").records() if each.outcome.ok):
        level, seen = record.levels["log"], as_tree(record.parity.sut)
        assert seen["log_driver"] == {"compact": "local", "nowhere": "none"}.get(level, "json-file")
        place = tmp_path / "store" / "raw" / f"{record.run_id}-{record.attempt}"
        raw = {path.name: path.read_bytes() for path in place.glob("sut.*")}
        carriers = {name for name, content in raw.items() if READY in content}
        assert carriers == {"file": {"sut.log"}, "nowhere": set()}.get(level, {"sut.stderr"}), list(raw)
