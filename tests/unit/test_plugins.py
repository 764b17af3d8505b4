"""Plug-ins of other packages: found by entry points, checked, refused by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tare.databases import Database
from tare.databases.fake import FakeDatabase
from tare.databases.registry import BUILT_IN
from tare.deployments import Deployment
from tare.deployments.fake import FakeDeployment
from tare.doctor import Verdict
from tare.doctor.plugins import plugin_lines
from tare.errors import EnvironmentLacks
from tare.plugins import Implementations, Package, breach_of, breach_of_factory

Installer = Callable[..., Implementations[Database]]


class Tiny(FakeDatabase):
    """Somebody else's database."""


class NoShutdown:
    """As `Tiny`, and one method is not there."""

    per_run = frozenset[str]()

    def __init__(self) -> None:
        for name in ("initialise", "serve", "ready", "effective", "per_run", "safe_to_kill", "slow_start_s"):
            setattr(self, name, getattr(FakeDatabase(), name))
        self.derived_settings = dict[str, frozenset[str]]()


class OddServe(FakeDatabase):
    def serve(self, plan: Any, port: int) -> Any:  # type: ignore[override]  # what is tested
        raise AssertionError


class OddAttribute(FakeDatabase):
    slow_start_s = "soon"  # type: ignore[assignment]  # what is tested


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Installer:
    """`install(NAME=implementation)`: a package `tare-tiny 1.2` that registers them as databases."""

    def installed(**databases: Any) -> Implementations[Database]:
        module = ModuleType("tare_tiny")
        for name, database in databases.items():
            setattr(module, name, database)
        monkeypatch.setitem(sys.modules, "tare_tiny", module)
        points = [point(name, f"tare_tiny:{name}") for name in databases]
        monkeypatch.setattr("tare.plugins.entry_points", lambda **_: EntryPoints(points))
        return Implementations("database", BUILT_IN, breach_of(Database))

    return installed


def point(name: str, value: str, package: str = "tare-tiny") -> EntryPoint:
    made = EntryPoint(name, value, "tare.databases")
    vars(made)["dist"] = SimpleNamespace(name=package, version="1.2")
    return made


def test_a_plugin_stands_beside_the_built_in_ones(install: Installer) -> None:
    databases = install(tiny=Tiny())
    assert isinstance(databases["tiny"], Tiny)
    assert set(databases) == {*BUILT_IN, "tiny"}
    assert len(databases) == len(BUILT_IN) + 1
    assert "tiny" in databases
    assert databases.package_of("tiny") == Package("tare-tiny", "1.2")
    assert databases.package_of("redis") is None


def test_nothing_is_looked_for_while_a_built_in_name_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tare.plugins.entry_points", pytest.fail)
    assert Implementations("database", BUILT_IN, breach_of(Database))["redis"] is BUILT_IN["redis"]


def test_a_name_that_nobody_has_is_a_key_error(install: Installer) -> None:
    with pytest.raises(KeyError):
        install()["tiny"]


@pytest.mark.parametrize(
    ("name", "implementation", "why"),
    [
        ("redis", Tiny(), "that name is built in"),
        ("fakest", Tiny(), "names that begin with 'fake' are for tests"),
        ("tiny", Tiny, "tare_tiny:tiny is a class; the entry point must name an instance"),
        ("tiny", NoShutdown(), "tare_tiny:tiny has no method shutdown"),
        ("tiny", OddServe(), "tare_tiny:tiny has a method serve with a wrong signature: it must take (plan)"),
        ("tiny", OddAttribute(), "tare_tiny:tiny must have slow_start_s of type float, got 'soon'"),
    ],
)
def test_what_breaks_the_contract_is_refused_in_one_sentence(
    install: Installer, name: str, implementation: Any, why: str
) -> None:
    databases = install(**{name: implementation})
    refusal = databases.plugins[name].refusal
    assert refusal is not None
    assert refusal.startswith(f"database {name} of tare-tiny 1.2 is refused: {why}")
    assert set(databases) == set(BUILT_IN)


def test_a_built_in_name_keeps_its_implementation(install: Installer) -> None:
    assert install(redis=Tiny())["redis"] is BUILT_IN["redis"]


def test_asking_for_a_refused_plugin_says_why(install: Installer) -> None:
    databases = install(tiny=NoShutdown())
    assert "tiny" not in databases
    with pytest.raises(
        EnvironmentLacks, match=r"database tiny of tare-tiny 1\.2 is refused: .* no method shutdown"
    ):
        databases["tiny"]


def test_a_module_that_cannot_be_imported_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints([point("tiny", "no_such_module_of_tiny:TINY")])
    monkeypatch.setattr("tare.plugins.entry_points", lambda **_: points)
    refusal = Implementations("database", BUILT_IN, breach_of(Database)).plugins["tiny"].refusal
    assert refusal is not None
    assert "no_such_module_of_tiny:TINY cannot be imported: ModuleNotFoundError" in refusal


def test_two_packages_with_one_name_are_refused(install: Installer, monkeypatch: pytest.MonkeyPatch) -> None:
    databases = install(tiny=Tiny())
    both = EntryPoints([point("tiny", "tare_tiny:tiny"), point("tiny", "tare_tiny:tiny", "tare-other")])
    monkeypatch.setattr("tare.plugins.entry_points", lambda **_: both)
    assert "registers that name too" in (databases.plugins["tiny"].refusal or "")


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_the_built_in_databases_keep_the_contract(name: str) -> None:
    assert breach_of(Database)(BUILT_IN[name]) is None


def test_a_deployment_is_a_class_made_of_host_ledger_and_engine() -> None:
    breach = breach_of_factory(Deployment)
    assert breach(FakeDeployment) is None
    assert breach(object()) == "must be a class"
    assert "must accept (host, ledger, engine)" in (breach(Tiny) or "")


def test_doctor_lists_plugins_and_warns_of_refused_ones(install: Installer) -> None:
    good, bad = plugin_lines((install(tiny=Tiny(), wrong=NoShutdown()),))
    assert (good.verdict, good.found) == (Verdict.OK, "database tiny: tare-tiny 1.2")
    assert bad.verdict is Verdict.WARNING
    assert bad.found.startswith("database wrong of tare-tiny 1.2 is refused: ")
