"""TLS as a factor, on real servers bare and in containers: agreed, recorded, and no key kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tare.images import Image
from tare.images.prepare import prepare
from tare.plan.expand import expand
from tare.record.run_record import RunRecord
from tare.run.execute import Destination, execute
from tare.run.interrupts import Interrupts
from tare.run.local import local_engine, local_machine
from tare.run.parity.references import References, until_refused
from tare.run.resume import StudyState
from tare.sites.layout import Layout, default_layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.reading.load import loads
from tare.study.registry import installed

pytestmark = pytest.mark.engine

STUDY = """\
format: 1
name: encrypted
question: Is every connection encrypted, and told as such?
sut:
  image: {image}
  database: {database}
  deployment: container
  network: bridge
  settings: {settings}
client: {{image: tare-load, deployment: bare}}
workload:
  name: tare-load
  connections: 4
  {work}
  measure_s: 1
  window_s: 0.5
protocol: {{name: fixed, blocks: 1, control: false}}
factors:
  arm:
    sets: [sut.tls, sut.deployment, sut.network]
    levels:
      clear: {{sut.deployment: bare, sut.network: host}}
      bare: {{sut.tls: true, sut.deployment: bare, sut.network: host}}
      bridge: {{sut.tls: true}}
baseline: clear
"""
OLTP = "sysbench: {script: oltp_point_select, tables: 1, table_size: 1000}"
STEPS = "steps: [{send: 'SET key:{record} {value}'}]"
GET = (
    "job: {generators: {key: {uniform: {from: 0, to: 999}}, value: {text: {length: 100}}}, "
    "operations: [{name: get, steps: [{send: 'GET key:{key}', expect: {bytes: 100}}]}], "
    f"load: {{records: 1000, {STEPS}}}}}"
)
YCSB = "ycsb: {core_workload: a, records: 200, properties: {fieldcount: 2}}"
SERVERS = {
    "redis": ("redis-7", "{save: ''}", GET),
    "postgresql": ("postgresql-15", "{shared_buffers: 32MB}", OLTP),
    "mariadb": ("mariadb", "{innodb_buffer_pool_size: 32M, innodb_log_file_size: 8M}", OLTP),
    "cassandra": ("cassandra-3.11", "{heap: 256M}", YCSB),
    "cassandra-5": ("cassandra-5.0", "{heap: 256M}", YCSB),
    "ferretdb": ("ferretdb-2", "{shared_buffers: 32MB}", YCSB),
}
SUITE = "TLS_AES_256_GCM_SHA384"
SUITES = {"ferretdb": "TLS_AES_128_GCM_SHA256"}
"""Go prefers the shorter key where the CPU has AES."""
Run = Callable[..., list[RunRecord]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the study with snapshots and work of its own, and images of the tests' cache."""
    cache, layout, staging = default_layout(), Layout(tmp_path / "home"), tmp_path / "staging"
    staging.mkdir()

    def run_study(database: str) -> list[RunRecord]:
        image, settings, work = SERVERS[database]
        text = STUDY.format(image=image, database=database, settings=settings, work=work)
        plan = expand(loads(text, installed()))
        kept: list[RunRecord] = []
        with local_engine() as engine:
            ledger = SqliteLedger(cache.ledger)

            def ready(reference: str) -> Image:
                return prepare(reference, host=LocalHost(), layout=cache, ledger=ledger, engine=engine.client)

            machine = local_machine(plan, engine, Interrupts(), layout)
            machine = replace(machine, own=replace(machine.own, prepare=ready), references=References())
            runs = execute(plan, machine, Destination(str(staging), StudyState(), staging), lambda _: None)
            for records in until_refused(runs, lambda _: None):
                kept.extend(records)
        return kept

    return run_study


@pytest.mark.parametrize(
    "database", ["mariadb", *(pytest.param(name, marks=pytest.mark.slow) for name in SERVERS if name != "mariadb")]
)
def test_arms_with_tls_tell_its_version_and_cipher_and_keep_the_key(
    database: str, run: Run, tmp_path: Path
) -> None:
    records = {record.arm: record for record in run(database)}
    assert [record.outcome.reason for record in records.values() if not record.outcome.ok] == []
    agreed = {arm: record.measurement and record.measurement.encryption for arm, record in records.items()}
    assert agreed["clear"] is None
    for arm in ("bare", "bridge"):
        encryption = agreed[arm]
        assert encryption is not None
        assert (encryption.version, encryption.cipher) == ("TLSv1.3", SUITES.get(database, SUITE))
        assert (encryption.handshake_ms or 0) > 0
    keys = [
        path for path in (tmp_path / "staging").rglob("*") if path.is_file() and b"MIGHAgE" in path.read_bytes()
    ]
    assert keys == []
    assert list((tmp_path / "staging").rglob("*.p12")) == []
