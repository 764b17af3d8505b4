"""The smallest study that `tare advise` writes is planned and run as it stands, on the real engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests import preloaded

from tare.store import open_store, verify

pytestmark = [pytest.mark.engine, pytest.mark.slow]

STUDY = """
format: 1
name: mine
question: What does a published address cost?
sut:
  image: mariadb
  database: mariadb
  deployment: bare
  network: host
  settings: {innodb_buffer_pool_size: 64M}
client: {image: sysbench, deployment: bare, network: host}
workload:
  {name: sysbench, script: oltp_read_only, tables: 1, table_size: 1000, threads: 2, warmup_s: 1, measure_s: 2}
baseline: bare
factors:
  path:
    levels:
      bare: {}
      host: {sut.deployment: container}
      address: {sut.deployment: container, sut.network: published-address}
"""


def tare(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = preloaded.run([sys.executable, "-m", "tare", *words], timeout=900, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.timeout(1200)  # images may have to be built first
def test_what_advise_writes_is_planned_and_run(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    output = tare("advise", "study.yaml", "--write", "small.yaml", cwd=tmp_path)
    assert "Nothing is known about address." in output.stdout
    assert "small.yaml" in output.stdout
    assert "mine-smallest" in tare("plan", "small.yaml", "--blocks", "2", cwd=tmp_path).stdout
    tare("run", "small.yaml", "--blocks", "2", "--store", "store", "--quiet", cwd=tmp_path)
    store = open_store(tmp_path / "store")
    records = store.records()
    assert sorted(record.arm for record in records) == ["address"] * 2 + ["bare"] * 2 + ["baseline-again"] * 2
    assert all(record.outcome.ok for record in records)
    assert verify(store) == ()
