"""Each requirement is asked by `tare plan`, `tare run` and `tare doctor` alike, whoever declares it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.unit.run.conftest import make_plan

from tare.deployments import CONTAINERD, POD
from tare.doctor import Verdict
from tare.doctor.requirement_lines import Examined, requirement_lines
from tare.errors import EnvironmentLacks
from tare.plan.model import Plan
from tare.requirements import HostPlan, Lack, Requirement
from tare.requirements.rights import ROOT
from tare.run.local import Engine, local_machine, refuse_blocked
from tare.run.requirements import PlugIns, uses_on
from tare.sites import Completed, Site
from tare.sites.engines import Engines
from tare.sites.facts import host_facts
from tare.sites.fake import FakeHost
from tare.sites.layout import Layout
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.model import MonitorSpec, StorageSpec
from tare.study.protocol_spec import DuetSpec
from tare.study.values import NetworkKind

INSTALLED = PlugIns().installed()
WHY = "planted for the test"
SETTINGS: dict[str, dict[str, Any]] = {
    "virtual machines": {"deployment": "vm"},
    "containerd": {"deployment": CONTAINERD},
    "cluster": {"deployment": POD},
    "NFS": {"storage": StorageSpec(kind="nfs")},
    "file systems": {"storage": StorageSpec(kind="block")},
    "pods": {"network": NetworkKind.POD},
    "pasta": {"network": NetworkKind.PASTA},
    "root between hosts": {"network": NetworkKind.MACVLAN},
    "root": {"deployment": "bare"},
    "log drivers": {"log_driver": "local"},
    "reserved huge pages": {"settings": {"huge_pages": "on"}},
    "IPv6 on loopback": {"bind": "::1"},
    **{f"engine {name}": {"engine": name} for name in ("docker", "podman", "podman-rootless")},
}
"""Requirement → settings of a server that needs it; others are needed by a container with every monitor."""


def plan_that_needs(requirement: Requirement) -> Plan:
    """A plan of one arm that needs it; of a duet, for the protocol's."""
    plan = make_plan()
    (arm,) = plan.study.arms
    sut = arm.settings.sut.model_copy(update={"deployment": "container", **SETTINGS.get(requirement.name, {})})
    monitors = {name: MonitorSpec() for name in ("mpstat", "iostat", "sar", "pidstat", "cadvisor", "profile")}
    settings = arm.settings.model_copy(update={"sut": sut, "client": None, "monitors": monitors})
    protocol = DuetSpec(name="duet") if requirement.name == "CPUs of the protocol" else plan.study.protocol
    update = {"arms": (arm.model_copy(update={"settings": settings}),), "protocol": protocol}
    return plan.model_copy(update={"study": plan.study.model_copy(update=update)})


@pytest.fixture(params=INSTALLED, ids=lambda each: each.name)
def planted(request: pytest.FixtureRequest) -> Iterator[Requirement]:
    """The one requirement that no host meets; nothing is asked for the others."""
    asks = {each: each.ask for each in INSTALLED}
    for each in INSTALLED:
        object.__setattr__(each, "ask", lambda _: [])  # they are frozen
    object.__setattr__(request.param, "ask", lambda _: [Lack(WHY, "mend it")])
    yield request.param
    for each, ask in asks.items():
        object.__setattr__(each, "ask", ask)


def test_plan_and_run_name_it(planted: Requirement, tmp_path: Path) -> None:
    plan, host = plan_that_needs(planted), FakeHost()
    if planted.between_hosts:
        uses = uses_on(plan, (Site(host, host),))[host.name]
        sentences = list(PlugIns().blockers(HostPlan(host, uses=uses, in_sites=True), 1))
    else:
        engine = Engine(None, None)
        machine = local_machine(plan, engine, None, Layout(tmp_path))
        with pytest.raises(EnvironmentLacks) as caught:
            refuse_blocked(plan, machine, engine, None)
        sentences = [line.removeprefix("  - ") for line in str(caught.value).splitlines()[1:]]
    assert len(sentences) == 1
    assert sentences[0].endswith(f" (arms: plain): {WHY}; mend it")
    assert planted.name in sentences[0] or "the monitor" in sentences[0]


def test_doctor_names_it_with_who_needs_it(
    planted: Requirement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tare.doctor.requirement_lines._TRIALS", {})  # what is not missing is tried elsewhere
    host = FakeHost(answers={("id", "-u"): Completed((), 0, b"1000\n"), ("mmdebstrap",): Completed((), 1)})
    with closing(Engines(host)) as engines:
        there = HostPlan(host, Layout(tmp_path), engines=engines, in_sites=planted.between_hosts)
        ledger = SqliteLedger(tmp_path / "ledger.sqlite")
        lines = list(requirement_lines(Examined(there, ledger, host_facts(host), None)))
    (line,) = [each for each in lines if each.verdict is not Verdict.OK]
    assert line.needed_by == planted.needed_by
    assert line.advice
    if planted is not ROOT and planted.name != "images":  # which say more than what is missing
        assert (line.name, line.found) == (planted.name, WHY)
        assert line.verdict is (Verdict.CANNOT if planted.essential else Verdict.MISSING)


def test_each_says_who_needs_it_how_it_is_tried_and_what_to_do() -> None:
    assert len({each.name for each in INSTALLED}) == len(INSTALLED) > 20
    assert not [each.name for each in INSTALLED if not (each.needed_by and each.tried_how and each.hint)]
