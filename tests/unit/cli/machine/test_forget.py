"""`tare clean --forget` removes from the ledger only what no cluster of the kubeconfig has, and says what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.deployments.kube.cluster import Answer, FakeClient, a_cluster, failure
from typer.testing import CliRunner
from urllib3.exceptions import MaxRetryError, NewConnectionError

from tare.cli import app
from tare.deployments.kube import namespaces
from tare.deployments.kube.api import Cluster, NoCluster, connect_all
from tare.deployments.sweep import sweep
from tare.errors import EnvironmentLacks, StudyError, TareError
from tare.sites import Process
from tare.sites.fake import FakeHost
from tare.sites.layout import default_layout
from tare.sites.ledger import Kind
from tare.sites.sqlite_ledger import SqliteLedger

GONE = Process(999_999, 1, "00000000-0000-4000-8000-000000000000")
NAME = "tare-f1988a0f1478"
FULL = f"{NAME}@of-this-cluster"
KUBE_SYSTEM = "/api/v1/namespaces/kube-system"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no-such-file"))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """Of a cluster that is reached."""
    cluster, client = a_cluster()
    monkeypatch.setattr(namespaces, "connect", lambda: cluster)
    monkeypatch.setattr(namespaces, "connect_all", lambda: (cluster,))
    return client


def note(
    ident: str = f"{NAME}@of-this-cluster", *, owner: Process | None = GONE, kind: Kind = Kind.NAMESPACE
) -> None:
    book = ledger()
    if owner is not None:
        book.owner = owner
    book.note(kind, ident)


def ledger() -> SqliteLedger:
    return SqliteLedger(default_layout().ledger)


def idents() -> list[str]:
    return [entry.ident for entry in ledger().entries()]


def clean(*words: str, typed: str | None = None) -> Any:
    return CliRunner().invoke(app, ["clean", "--forget", *words], input=typed)


def refusal(*words: str) -> TareError:
    """Why it is refused."""
    result = clean(*words, "--yes")
    assert isinstance(result.exception, TareError)
    return result.exception


def silent(client: FakeClient) -> None:
    reason = NewConnectionError(None, "Connection refused")  # type: ignore[arg-type]  # no pool is needed to fail
    client.refusals["GET", "/api"] = MaxRetryError(None, "/api", reason)  # type: ignore[arg-type]  # no pool is needed to fail


def test_a_namespace_of_a_cluster_that_does_not_answer_is_forgotten(client: FakeClient) -> None:
    note()
    silent(client)
    result = clean(FULL, "--yes")
    assert result.exit_code == 0
    assert f"forgot namespace {NAME}@of-this-cluster on local: the cluster at https://" in result.stdout
    assert "does not answer" in result.stdout
    assert idents() == []


def test_a_namespace_is_named_with_its_cluster_since_none_that_answers_may_be_it(client: FakeClient) -> None:
    note()
    silent(client)
    error = refusal(NAME)
    assert str(error).startswith(f"{NAME} does not name the cluster by the uid of its kube-system")
    assert FULL in str(error)
    assert idents() == [FULL]
    assert not client.asked


def test_a_namespace_is_kept_where_its_cluster_is_that_of_another_context(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    current, other = a_cluster()
    other.objects[KUBE_SYSTEM] = {"metadata": {"uid": "of-the-current"}}
    theirs, _ = a_cluster()
    unusable = NoCluster("the context old of the kubeconfig cannot be used")
    monkeypatch.setattr(namespaces, "connect_all", lambda: (current, unusable, theirs))
    note()
    assert "the cluster that has the namespace tare-f1988a0f1478 answers at https://" in str(refusal(FULL))
    assert idents() == [FULL]
    monkeypatch.setattr(namespaces, "connect_all", lambda: (current, unusable))
    shown = clean(FULL, "--yes").stdout
    assert "it is in another cluster than https://cluster:6443; the context old of the kubeconfig cannot" in shown
    assert idents() == []
    assert not client.asked


def test_every_context_of_the_kubeconfig_is_one_of_the_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(kind: str, name: str, **what: str) -> dict[str, Any]:
        return {"name": name, kind: what}

    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [named("cluster", name, server=f"https://{name}:6443") for name in ("one", "two")],
        "users": [],
        "contexts": [
            *(named("context", name, cluster=name, user="") for name in ("two", "one")),
            named("context", "old", cluster="none", user=""),
        ],
    }
    (tmp_path / "config").write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    *usable, old = connect_all()
    assert [each.server for each in usable if isinstance(each, Cluster)] == ["https://two:6443", "https://one:6443"]
    assert isinstance(old, NoCluster)
    assert "the context old of the kubeconfig cannot be used" in str(old)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (failure(401, "Unauthorized"), "does not permit GET"),
        (failure(404, "page not found"), "refuses GET"),
        (failure(503, "no backend"), "refuses GET"),
        (Answer(200, b"<html>sign in</html>"), "is not the API of a Kubernetes cluster"),
        (Answer(200, b'{"kind": "Namespace", "metadata": []}'), "is not the API of a Kubernetes cluster"),
    ],
)
def test_a_namespace_is_forgotten_where_something_else_has_its_clusters_address(
    client: FakeClient, answer: Answer, why: str
) -> None:
    note()
    client.refusals["GET", KUBE_SYSTEM] = answer
    (failed,) = sweep(ledger().entries(), {"local": FakeHost()}, None, ledger()).failed
    assert why in failed
    assert failed.endswith(f"tare clean --forget {FULL}")
    assert why in clean(FULL, "--yes").stdout
    assert idents() == []


def test_a_namespace_is_forgotten_where_no_cluster_is_configured() -> None:
    note()
    assert "no cluster is configured" in clean(FULL, "--yes").stdout
    assert idents() == []


def test_a_namespace_of_another_cluster_than_the_one_that_answers_is_forgotten(client: FakeClient) -> None:
    note(f"{NAME}@of-a-cluster-that-was")
    assert "it is in another cluster than https://" in clean(f"{NAME}@of-a-cluster-that-was", "--yes").stdout
    assert idents() == []
    assert [method for method, _ in client.asked] == ["GET"], "nothing is removed in that other cluster"


def test_what_its_cluster_can_still_remove_is_not_forgotten(client: FakeClient) -> None:
    note()
    assert "the cluster that has the namespace tare-f1988a0f1478 answers at https://" in str(refusal(FULL))
    assert idents() == [f"{NAME}@of-this-cluster"]
    assert client.asked


def test_nothing_is_forgotten_where_a_cluster_answers_but_does_not_tell_which_it_is(client: FakeClient) -> None:
    note()
    client.refusals["GET", KUBE_SYSTEM] = failure(403, "namespaces is forbidden")
    assert "does not permit GET /api/v1/namespaces/kube-system" in str(refusal(FULL))
    assert idents() == [f"{NAME}@of-this-cluster"]


def test_nothing_is_forgotten_where_there_is_no_client_to_ask_by(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking() -> None:
        raise EnvironmentLacks("the package `kubernetes` is missing")

    note()
    monkeypatch.setattr(namespaces, "connect_all", lacking)
    assert "the package `kubernetes` is missing" in str(refusal(FULL))
    assert idents() == [f"{NAME}@of-this-cluster"]


def test_what_a_running_tare_made_is_not_forgotten(client: FakeClient) -> None:
    note(owner=None)
    silent(client)
    assert "a running tare (process " in str(refusal(FULL))
    assert idents() == [f"{NAME}@of-this-cluster"]


def test_only_namespaces_are_forgotten() -> None:
    note("tare-net", kind=Kind.NETWORK)
    error = refusal("tare-net")
    assert isinstance(error, StudyError)
    assert "network tare-net on local is not forgotten" in str(error)
    assert idents() == ["tare-net"]


def test_a_name_that_the_ledger_has_not_is_refused() -> None:
    assert "the ledger has no tare-0" in str(refusal("tare-0"))


def test_a_name_in_two_clusters_is_to_be_named_in_full(client: FakeClient) -> None:
    note(f"{NAME}@one")
    note(f"{NAME}@two")
    assert f"{NAME}@one" in str(refusal(NAME))
    assert clean(f"{NAME}@two", "--yes").exit_code == 0
    assert idents() == [f"{NAME}@one"]
    assert client.asked


def test_what_would_be_forgotten_is_shown_and_stays(client: FakeClient) -> None:
    note()
    silent(client)
    printed = json.loads(clean(FULL, "--dry-run", "--format", "json").stdout)
    assert printed["would_forget"] == [f"namespace {NAME}@of-this-cluster on local"]
    assert "does not answer" in printed["why"]
    assert idents() == [f"{NAME}@of-this-cluster"]


def test_it_asks_first_and_says_what_is_lost(client: FakeClient) -> None:
    note()
    silent(client)
    declined = clean(FULL, typed="n\n")
    assert declined.exit_code != 0
    assert f"namespace {NAME} of the cluster whose kube-system has the uid of-this-cluster" in declined.stderr
    assert idents() == [f"{NAME}@of-this-cluster"]
    assert clean(FULL, typed="y\n").exit_code == 0
    assert idents() == []


@pytest.mark.parametrize("more", [("--keep-images",), ("--sites", "sites.yaml"), ("--site", "rack-1")])
def test_it_goes_with_no_option_that_means_something_else(more: tuple[str, ...]) -> None:
    note()
    assert "--forget goes with" in str(refusal(FULL, *more))
    assert idents() == [f"{NAME}@of-this-cluster"]


def test_a_sweep_that_cannot_ask_the_cluster_names_the_way_out(client: FakeClient) -> None:
    note()
    silent(client)
    (failed,) = sweep(ledger().entries(), {"local": FakeHost()}, None, ledger()).failed
    assert failed.endswith(
        f"; set KUBECONFIG to that cluster's file, or if it is gone for good: tare clean --forget {FULL}"
    )
    assert idents() == [f"{NAME}@of-this-cluster"]
