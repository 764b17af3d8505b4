"""`tare clean --forget` strikes out only what nobody can be asked to remove, and says what it strikes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.deployments.kube.cluster import FakeClient, a_cluster, failure
from typer.testing import CliRunner
from urllib3.exceptions import MaxRetryError, NewConnectionError

from tare.cli import app
from tare.deployments.kube import namespaces
from tare.deployments.sweep import sweep
from tare.errors import EnvironmentLacks, StudyError, TareError
from tare.sites import Process
from tare.sites.fake import FakeHost
from tare.sites.layout import default_layout
from tare.sites.ledger import Kind
from tare.sites.sqlite_ledger import SqliteLedger

GONE = Process(999_999, 1, "00000000-0000-4000-8000-000000000000")
NAME = "tare-f1988a0f1478"


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


@pytest.mark.parametrize("name", [NAME, f"{NAME}@of-this-cluster"])
def test_a_namespace_of_a_cluster_that_does_not_answer_is_forgotten(client: FakeClient, name: str) -> None:
    note()
    silent(client)
    result = clean(name, "--yes")
    assert result.exit_code == 0
    assert f"forgot namespace {NAME}@of-this-cluster on local: the cluster at https://" in result.stdout
    assert "does not answer" in result.stdout
    assert idents() == []


def test_a_namespace_is_forgotten_where_no_cluster_is_configured() -> None:
    note()
    assert "no cluster is configured" in clean(NAME, "--yes").stdout
    assert idents() == []


def test_a_namespace_of_another_cluster_than_the_one_that_answers_is_forgotten(client: FakeClient) -> None:
    note(f"{NAME}@of-a-cluster-that-was")
    assert "it is in another cluster than https://" in clean(NAME, "--yes").stdout
    assert idents() == []
    assert [method for method, _ in client.asked] == ["GET"], "nothing is removed in that other cluster"


def test_what_its_cluster_can_still_remove_is_not_forgotten(client: FakeClient) -> None:
    note()
    assert "the cluster that has the namespace tare-f1988a0f1478 answers at https://" in str(refusal(NAME))
    assert idents() == [f"{NAME}@of-this-cluster"]
    assert client.asked


def test_nothing_is_forgotten_where_a_cluster_answers_but_does_not_tell_which_it_is(client: FakeClient) -> None:
    note()
    client.refusals["GET", "/api/v1/namespaces/kube-system"] = failure(403, "namespaces is forbidden")
    assert "does not permit GET /api/v1/namespaces/kube-system" in str(refusal(NAME))
    assert idents() == [f"{NAME}@of-this-cluster"]


def test_nothing_is_forgotten_where_there_is_no_client_to_ask_by(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking() -> None:
        raise EnvironmentLacks("the package `kubernetes` is missing")

    note()
    monkeypatch.setattr(namespaces, "connect", lacking)
    assert "the package `kubernetes` is missing" in str(refusal(NAME))
    assert idents() == [f"{NAME}@of-this-cluster"]


def test_what_a_running_tare_made_is_not_forgotten(client: FakeClient) -> None:
    note(owner=None)
    silent(client)
    assert "a running tare (process " in str(refusal(NAME))
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
    printed = json.loads(clean(NAME, "--dry-run", "--format", "json").stdout)
    assert printed["would_forget"] == [f"namespace {NAME}@of-this-cluster on local"]
    assert "does not answer" in printed["why"]
    assert idents() == [f"{NAME}@of-this-cluster"]


def test_it_asks_first_and_says_what_is_lost(client: FakeClient) -> None:
    note()
    silent(client)
    declined = clean(NAME, typed="n\n")
    assert declined.exit_code != 0
    assert f"namespace {NAME} of the cluster whose kube-system has the uid of-this-cluster" in declined.stderr
    assert idents() == [f"{NAME}@of-this-cluster"]
    assert clean(NAME, typed="y\n").exit_code == 0
    assert idents() == []


@pytest.mark.parametrize("more", [("--keep-images",), ("--sites", "sites.yaml"), ("--site", "rack-1")])
def test_it_goes_with_no_option_that_means_something_else(more: tuple[str, ...]) -> None:
    note()
    assert "--forget goes with" in str(refusal(NAME, *more))
    assert idents() == [f"{NAME}@of-this-cluster"]


def test_a_sweep_that_cannot_ask_the_cluster_names_the_way_out(client: FakeClient) -> None:
    note()
    silent(client)
    (failed,) = sweep(ledger().entries(), {"local": FakeHost()}, None, ledger()).failed
    assert failed.endswith(f"; if that cluster is gone for good: tare clean --forget {NAME}")
    assert idents() == [f"{NAME}@of-this-cluster"]
