"""A study that places one server bare, in a container of containerd's and in one of Docker's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.integration.runs.command import tare
from tests.unit.record.parts import as_tree

from tare.deployments.containerd.client import NAMESPACE
from tare.deployments.containerd.ctr import ctr, find_socket
from tare.deployments.kube.node_image import remove_node_image
from tare.sites.layout import default_layout
from tare.sites.ledger import Kind
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.store.read import open_store

pytestmark = [pytest.mark.engine, pytest.mark.timeout(600), pytest.mark.usefixtures("clean_containerd")]

STUDY = """\
format: 1
name: tiny
question: What does dockerd add to a container of containerd?
sut:
  image: redis-7
  database: redis
  deployment: bare
  limits: {cpus: "0", memory: 256M}
  settings: {save: "", appendonly: false}
client: {image: tare-load, deployment: bare, limits: {cpus: "1"}}
workload:
  name: tare-load
  connections: 8
  job:
    generators: {key: {uniform: {from: 0, to: 999}}, value: {text: {length: 100}}}
    operations:
      - {name: get, steps: [{send: "GET key:{key}", expect: {bytes: 100}}]}
    load: {records: 1000, steps: [{send: "SET key:{record} {value}"}]}
  warmup_s: 1
  measure_s: 2
protocol: {name: fixed, blocks: 1, control: false}
factors:
  place:
    sets: [sut.deployment, client.deployment]
    levels:
      bare: {}
      containerd: {sut.deployment: containerd}
      docker: {sut.deployment: container}
      client: {client.deployment: containerd}
baseline: {place: bare}
"""
ARMS = ("bare", "containerd", "docker", "client")


@pytest.mark.slow
def test_a_study_compares_bare_containerd_and_docker_alike_but_for_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    try:
        printed = json.loads(tare(tmp_path, "run", "study.yaml", "--store", "store", "--format", "json", "--quiet"))
        records = {record.arm: record for record in open_store(tmp_path / "store").records()}
        assert printed["good"] == len(ARMS), {arm: record.outcome.reason for arm, record in records.items()}
        for arm in ARMS:
            record, bare = records[arm], as_tree(records["bare"].parity.sut)
            seen = as_tree(record.parity.sut)
            assert record.path is not None
            assert record.path.hop == "loopback"
            for key in ("limits", "binary_digest", "memory_bytes", "cpus_allowed", "cpu_weight", "oom_score_adj"):
                assert seen[key] == bare[key], (arm, key)
            assert record.usage is not None
            assert (record.usage.sut_cpu_s or 0) > 0
            assert (seen["containerd"] is not None) is (arm == "containerd")
        assert as_tree(records["containerd"].parity.sut)["containerd"]["namespace"] == NAMESPACE
        assert as_tree(records["client"].parity.client)["containerd"]["namespace"] == NAMESPACE
        host = LocalHost()
        assert ctr(host, find_socket(host), "containers", "ls", "-q", namespace=NAMESPACE).split() == []
        assert "containerd" in tare(tmp_path, "report", "store")
    finally:
        forget_images()


def forget_images() -> None:
    """Take what the study brought into the engine's containerd out of it."""
    ledger = SqliteLedger(default_layout().ledger)
    for entry in [each for each in ledger.entries() if each.kind is Kind.NODE_IMAGE]:
        if entry.ident.endswith(f"#{NAMESPACE}"):
            remove_node_image(LocalHost(), entry.ident)
            ledger.forget(entry.kind, entry.ident, host=entry.host)


def test_a_study_that_no_containerd_can_run_starts_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONTAINERD_ADDRESS", "/run/no/such.sock")
    (tmp_path / "study.yaml").write_text(STUDY)
    printed = tare(tmp_path, "run", "study.yaml", "--store", "store", code=3)
    assert "containerd, needed by arms with `deployment: containerd` (" in printed
    assert "): no containerd runs on local: /run/no/such.sock is not a socket" in printed
    assert {each.name for each in tmp_path.iterdir()} == {"study.yaml", ".tare"}
