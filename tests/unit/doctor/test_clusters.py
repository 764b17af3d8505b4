"""The doctor starts a pod in the user's cluster, says that it works or why not, and leaves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.deployments.kube.cluster import failure
from tests.unit.deployments.kube.test_cluster_pod import Bench, state

from tare.deployments.kube import namespaces
from tare.deployments.kube.api import Cluster
from tare.doctor import Line, Verdict
from tare.doctor.clusters import cluster_lines
from tare.errors import EnvironmentLacks
from tare.sites import Completed


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    bench = Bench(tmp_path)
    monkeypatch.setattr(namespaces, "connect", lambda: bench.cluster)
    bench.host.answers |= {("id", "-u"): Completed((), 0, b"0\n"), ("mktemp",): Completed((), 0, b"/tmp/x\n")}
    return bench


def line(bench: Bench) -> Line:
    (one,) = cluster_lines(bench.host, bench.ledger, lambda: bench.cluster)
    return one


def ends(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program ends as soon as it is to."""
    from tare.deployments.kube import cluster_pod

    def warden(*_: Any, **__: Any) -> str:
        bench.host.end(bench.process)
        bench.tell(state("terminated", exitCode=137))
        return ""

    monkeypatch.setattr(cluster_pod, "warden", warden)


def test_a_cluster_works_where_a_pod_was_started(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    ends(bench, monkeypatch)
    one = line(bench)
    assert one.verdict is Verdict.OK
    assert one.found.startswith("https://cluster:6443: works, a pod was started and ended in ")
    assert one.found.endswith("(node node-1, kubelet v1.34.4, containerd 1.6.20~ds1)")
    assert ("POST", "/api/v1/namespaces") in bench.client.asked
    assert bench.left == set()
    assert bench.ledger.entries() == ()


def test_a_pod_that_does_not_start_is_the_reason(bench: Bench) -> None:
    bench.status = state("waiting", reason="CreateContainerError", message="no space left on device")
    one = line(bench)
    assert one.verdict is Verdict.MISSING
    assert "does not work: the pod" in one.found
    assert "CreateContainerError: no space left on device" in one.found
    assert bench.ledger.entries() == ()


def test_missing_rights_are_named_and_nothing_is_made(bench: Bench) -> None:
    bench.client.refusals["GET", "/api/v1/nodes"] = failure(403, "nodes is forbidden")
    one = line(bench)
    assert (one.verdict, "nodes is forbidden" in one.found) == (Verdict.MISSING, True)
    assert ("POST", "/api/v1/namespaces") not in bench.client.asked


def test_without_root_nothing_is_asked(bench: Bench) -> None:
    bench.host.answers["id", "-u"] = Completed((), 0, b"1000\n")
    one = line(bench)
    assert (one.verdict, "without root" in one.found, bench.client.asked) == (Verdict.MISSING, True, [])


def test_no_cluster_is_no_fault(bench: Bench) -> None:
    def none() -> Cluster:
        raise EnvironmentLacks("no cluster is configured: Invalid kube-config file")

    (one,) = cluster_lines(bench.host, bench.ledger, none)
    assert (one.verdict, one.found) == (Verdict.OK, "no cluster is configured: Invalid kube-config file")
