"""A study that places its server bare and in virtual machines, on the real QEMU, with a client outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.integration.runs.command import tare
from tests.unit.record.parts import as_tree

from tare.store.read import open_store

# A server sees the blocks of its disk, below an overlay none: how it writes its log is therefore said.
STUDY = """\
format: 1
name: tiny
question: What does a virtual machine cost a server that is read?
sut:
  image: mariadb
  database: mariadb
  deployment: bare
  limits: {cpus: "0-1", memory: 384M}
  settings:
    innodb_buffer_pool_size: 32M
    innodb_log_file_size: 8M
    innodb_log_write_ahead_size: 4096
    innodb_log_file_buffering: "ON"
client: {image: sysbench, deployment: bare}
workload: {name: sysbench, script: oltp_read_only, tables: 1, table_size: 500, warmup_s: 3, measure_s: 4}
protocol: {name: fixed, blocks: 1, control: false}
factors:
  model:
    sets: [sut.deployment, sut.network, sut.storage.kind, sut.vm.cache, sut.vm.pin, client.deployment]
    levels:
      bare: {}
      vm: {sut.deployment: vm, sut.network: user}
      vm-tap: {sut.deployment: vm, sut.network: tap, sut.vm.cache: writeback, sut.vm.pin: true}
      vm-container: {sut.deployment: vm-container, sut.network: user, client.deployment: container}
      vm-container-layer:
        {sut.deployment: vm-container, sut.network: tap, sut.storage.kind: layer, client.deployment: container}
baseline: {model: bare}
"""
HOPS = {"bare": "loopback", "vm": "user", "vm-tap": "tap", "vm-container": "user", "vm-container-layer": "tap"}
MOUNTS = {"vm-container-layer": "overlay"}


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_study_runs_bare_and_in_machines_alike_but_for_the_machine(tmp_path: Path) -> None:
    for image in ("mariadb", "sysbench"):
        tare(tmp_path, "images", "build", image)
    (tmp_path / "study.yaml").write_text(STUDY)
    summary = json.loads(tare(tmp_path, "run", "study.yaml", "--store", "store", "--format", "json", "--quiet"))
    assert summary["good"] == len(HOPS)
    records = {record.arm: record for record in open_store(tmp_path / "store").records()}
    emulated = {}
    for arm, hop in HOPS.items():
        record = records[arm]
        seen, client = as_tree(record.parity.sut), as_tree(record.parity.client)
        assert record.path is not None
        assert record.path.hop == hop
        assert seen["memory_bytes"] == 384 << 20
        assert (seen["cpus_allowed"], client["cpus_allowed"]) == ("0-1", "0-1")
        outside = {**seen["mounts"], **({} if arm == "bare" else seen["guest"]["disk_files"])}
        assert outside == as_tree(records["bare"].parity.sut)["mounts"]
        assert seen["mounts"]["/var/lib/mysql"].startswith(MOUNTS.get(arm, outside["/var/lib/mysql"]))
        assert record.snapshot == records["bare"].snapshot
        assert record.usage is not None
        assert (record.usage.sut_cpu_s or 0) > 0
        assert record.measurement is not None
        assert record.measurement.done > 0
        emulated[arm] = record.emulated
    for arm in HOPS.keys() - {"bare"}:
        cache, threads = ("writeback", ("0", "1")) if arm == "vm-tap" else ("none", ("0-1", "0-1"))
        inside = as_tree(records[arm].parity.sut)["guest"]
        boxed = arm.startswith("vm-container")
        assert (inside["container"] is not None) is boxed
        assert as_tree(records[arm].parity.sut)["seccomp"] == ("2" if boxed else "0")
        assert (inside["cpus"], inside["disk_cache"], inside["cpu_threads"]) == ("0-1", cache, threads)
        assert inside["mounts"]["/var/lib/mysql"].startswith(MOUNTS.get(arm, "ext4"))
        assert inside["memory_bytes"] > 384 << 20
        assert emulated[arm] == (("sut",) if inside["accelerator"] == "tcg" else ())
        raw = tmp_path / "store" / "raw" / f"{records[arm].run_id}-1"
        assert b"tare-guest: ready" in (raw / "sut.console").read_bytes()
        counted = [json.loads(line) for line in (raw / "sut.guest.jsonl").read_text().splitlines()]
        assert len(counted) > 3
        assert {"/proc/stat", "/proc/diskstats", "/sys/fs/cgroup/task/memory.current"} <= set(counted[0])
    assert emulated["bare"] == ()
    if emulated["vm"]:
        assert "(emulated) vm-tap" in tare(tmp_path, "report", "store")
        assert "emulated" in tare(tmp_path, "knowledge", "add", "store", code=2)
