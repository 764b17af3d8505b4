"""A study that places its client in virtual machines, on the real QEMU, whatever its server stands in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.integration.runs.command import tare
from tests.unit.record.parts import as_tree

from tare.store.read import open_store

STUDY = """\
format: 1
name: tiny
question: What does a virtual machine cost the client?
sut:
  image: mariadb
  database: mariadb
  deployment: bare
  limits: {cpus: "0", memory: 384M}
  settings:
    innodb_buffer_pool_size: 32M
    innodb_log_file_size: 8M
    innodb_log_write_ahead_size: 4096
    innodb_log_file_buffering: "ON"
client: {image: sysbench, deployment: bare, limits: {cpus: "1", memory: 256M}}
workload: {name: sysbench, script: oltp_read_only, tables: 1, table_size: 500, warmup_s: 1, measure_s: 30}
protocol: {name: fixed, blocks: 1, control: false}
factors:
  model:
    sets: [sut.deployment, sut.network, client.deployment, client.network]
    levels:
      bare: {}
      client: {client.deployment: vm, client.network: user}
      published:
        sut.deployment: container
        sut.network: published-loopback
        client.deployment: vm-container
        client.network: user
      both: {sut.deployment: vm, sut.network: tap, client.deployment: vm, client.network: user}
baseline: {model: bare}
"""
HOPS = {"bare": {"loopback"}, "client": {"loopback"}, "published": {"docker-proxy", "dnat"}, "both": {"tap"}}


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_client_in_a_machine_reaches_servers_wherever_they_stand(tmp_path: Path) -> None:
    for image in ("mariadb", "sysbench"):
        tare(tmp_path, "images", "build", image)
    (tmp_path / "study.yaml").write_text(STUDY)
    summary = json.loads(tare(tmp_path, "run", "study.yaml", "--store", "store", "--format", "json", "--quiet"))
    assert summary["good"] == len(HOPS)
    records = {record.arm: record for record in open_store(tmp_path / "store").records()}
    for arm, hops in HOPS.items():
        record = records[arm]
        seen = as_tree(record.parity.client)
        assert record.path is not None
        assert record.path.hop in hops
        assert (seen["memory_bytes"], seen["cpus_allowed"]) == (256 << 20, "1")
        assert record.snapshot == records["bare"].snapshot
        assert record.usage is not None
        assert (record.usage.client_cpu_s or 0) > 0
        assert record.measurement is not None
        assert record.measurement.done > 0
    assert records["bare"].path is not None
    assert records["bare"].path.client_hop is None
    assert records["bare"].emulated == ()
    for arm in HOPS.keys() - {"bare"}:
        record = records[arm]
        inside = as_tree(record.parity.client)["guest"]
        assert record.path is not None
        assert record.path.client_hop == "user"
        assert (inside["container"] is not None) is (arm == "published")
        sides = ("sut", "client") if arm == "both" else ("client",)
        assert record.emulated == (sides if inside["accelerator"] == "tcg" else ())
        raw = tmp_path / "store" / "raw" / f"{record.run_id}-1"
        assert b"tare-guest: ready" in (raw / "measure.console").read_bytes()
    if records["both"].emulated:
        assert "(emulated) client" in tare(tmp_path, "report", "store")
