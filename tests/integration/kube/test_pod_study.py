"""A study that places its server bare and in pods of a real cluster, told alike but for what a pod is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.integration.runs.command import tare
from tests.unit.record.parts import as_tree

from tare.deployments.kube.api import Cluster
from tare.store.read import open_store

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(1500)]

STUDY = """\
format: 1
name: tiny
question: What does a pod cost a server that is read?
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
  measure_s: 3
protocol: {name: fixed, blocks: 1, control: false}
factors:
  place:
    sets: [sut.deployment, sut.network, sut.pod.qos, sut.limits.cpu_quota]
    levels:
      bare: {}
      host-network: {sut.deployment: pod}
      pod: {sut.deployment: pod, sut.network: pod}
      service: {sut.deployment: pod, sut.network: cluster-ip}
      node-port: {sut.deployment: pod, sut.network: node-port}
      guaranteed:
        {sut.deployment: pod, sut.network: pod, sut.pod.qos: guaranteed, sut.limits.cpu_quota: 1.0}
baseline: {place: bare}
"""
HOPS = {
    "bare": "loopback", "host-network": "loopback", "pod": "bridge", "service": "dnat", "node-port": "dnat",
    "guaranteed": "bridge",
}  # fmt: skip


def test_a_study_runs_bare_and_in_pods_alike_but_for_the_pod(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    printed = json.loads(tare(tmp_path, "run", "study.yaml", "--store", "store", "--format", "json", "--quiet"))
    assert printed["good"] == len(HOPS)
    records = {record.arm: record for record in open_store(tmp_path / "store").records()}
    for arm, hop in HOPS.items():
        record = records[arm]
        seen, bare = as_tree(record.parity.sut), as_tree(records["bare"].parity.sut)
        assert record.path is not None
        assert record.path.hop == hop
        assert (seen["memory_bytes"], seen["cpus_allowed"]) == (256 << 20, "0")
        assert seen["limits"] == bare["limits"]
        assert seen["binary_digest"] == bare["binary_digest"]
        assert record.measurement is not None
        assert record.measurement.done > 0
        assert record.usage is not None
        assert (record.usage.sut_cpu_s or 0) > 0
        assert (seen["pod"] is None) is (arm == "bare")
    assert as_tree(records["guaranteed"].parity.sut)["pod"]["qos"] == "guaranteed"
    assert as_tree(records["guaranteed"].parity.sut)["cpu_quota"] == 1.0
    assert as_tree(records["pod"].parity.sut)["pod"]["qos"] == "burstable"
    spaces = cluster.must_get("/api/v1/namespaces")["items"]
    assert not [each["metadata"]["name"] for each in spaces if each["metadata"]["name"].startswith("tare-")]
    assert "host-network" in tare(tmp_path, "report", "store")


def test_a_study_that_this_user_cannot_run_in_the_cluster_starts_nothing(
    kubeconfig: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(Path(kubeconfig).with_name("stranger.kubeconfig")))
    (tmp_path / "study.yaml").write_text(STUDY)
    printed = tare(tmp_path, "run", "study.yaml", "--store", "store", code=3)
    assert ": the user at https://127.0.0.1:" in printed
    assert "may not create namespaces" in printed
    assert not (tmp_path / "store").exists()


CLIENTS = {
    "outside": ("bare", "host", "bare", "host", "loopback"),
    "client-pod": ("bare", "host", "pod", "pod", "bridge"),
    "client-host-network": ("bare", "host", "pod", "host", "loopback"),
    "pods": ("pod", "pod", "pod", "pod", "bridge"),
    "pods-service": ("pod", "cluster-ip", "pod", "pod", "dnat"),
    "pods-node-port": ("pod", "node-port", "pod", "pod", "dnat"),
    "pods-host-network": ("pod", "host", "pod", "pod", "bridge"),
}
"""Arm → the server's deployment and network, the client's, and the hop between them."""


def test_a_study_has_its_client_in_pods_before_servers_in_pods_and_outside(
    cluster: Cluster, tmp_path: Path
) -> None:
    levels = "\n".join(
        f"      {arm}: {{sut.deployment: {sut}, sut.network: {at}, "
        f"client.deployment: {client}, client.network: {by}}}"
        for arm, (sut, at, client, by, _) in CLIENTS.items()
    )
    sets = "[sut.deployment, sut.network, client.deployment, client.network]"
    factors = f"factors:\n  place:\n    sets: {sets}\n    levels:\n{levels}\nbaseline: {{place: outside}}\n"
    (tmp_path / "study.yaml").write_text(STUDY.partition("factors:\n")[0] + factors)
    printed = json.loads(tare(tmp_path, "run", "study.yaml", "--store", "store", "--format", "json", "--quiet"))
    records = {record.arm: record for record in open_store(tmp_path / "store").records()}
    assert printed["good"] == len(CLIENTS), {arm: record.outcome.reason for arm, record in records.items()}
    for arm, (sut, _, client, _, hop) in CLIENTS.items():
        record = records[arm]
        assert record.path is not None
        assert (record.path.hop, record.path.connections) == (hop, 8)
        sides = {"sut": sut, "client": client}
        assert {side: (as_tree(record.parity.of(side))["pod"] is not None) for side in sides} == {
            side: deployment == "pod" for side, deployment in sides.items()
        }
        assert as_tree(record.parity.client)["cpus_allowed"] == "1"
        assert as_tree(record.parity.sut)["cpus_allowed"] == "0"
        outside = as_tree(records["outside"].parity.client)
        assert as_tree(record.parity.client)["limits"] == outside["limits"]
        assert record.usage is not None
        assert (record.usage.client_cpu_s or 0) > 0
    spaces = cluster.must_get("/api/v1/namespaces")["items"]
    assert not [each["metadata"]["name"] for each in spaces if each["metadata"]["name"].startswith("tare-")]
