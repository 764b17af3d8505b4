"""A whole run between two test hosts in seconds: a small server on one, its client on the other, no engine.

Fakes have no control group by which their sockets are told from others': paths are `test_two_hosts`' business.
"""

from __future__ import annotations

import hashlib
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.hosts.namespace_host import NamespaceHost
from tests.unit.record.parts import received_by

from tare.deployments.fake import FakeDeployment
from tare.images import Image, ImageConfig
from tare.images.image_store import ImageStore
from tare.plan.expand import expand
from tare.plan.model import Plan
from tare.record.run_record import RunRecord
from tare.run.between.site import Home, Reached, site_machine
from tare.run.execute import Destination, execute
from tare.run.machine import Machine
from tare.run.resume import StudyState
from tare.sites import Site
from tare.sites.layout import Layout
from tare.sites.sqlite_ledger import SqliteLedger
from tare.study.model import Arm, ArmSettings, ClientSpec, Study, SutSpec
from tare.study.protocol_spec import FixedSpec
from tare.workloads.registry import WORKLOADS
from tools import hosts
from tools.lab import TestHost

pytestmark = pytest.mark.root


def fake_image(reference: str) -> Image:
    return Image(reference, hashlib.sha256(reference.encode()).hexdigest(), "/", None, ImageConfig())


def plan_of_one_run(nodes: int = 1, retries: int = 0) -> Plan:
    parameters = WORKLOADS["fake"].parameters.model_validate({"measure_s": 2, "window_s": 0.5})
    settings = ArmSettings(
        sut=SutSpec(image="tar:fake", deployment="fake", database="fake", nodes=nodes),
        client=ClientSpec(image="tar:fake", deployment="fake"),
        workload_name="fake",
        workload=parameters.model_dump(mode="json"),
    )
    study = Study(
        name="fakes-apart",
        scale="full",
        question="Do servers and their client meet between hosts?",
        source=None,
        arms=(Arm(name="plain", levels={"arm": "plain"}, settings=settings),),
        baseline="plain",
        factors={"arm": ("plain",)},
        protocol=FixedSpec(name="fixed", blocks=1, retries=retries, control=False),
        published=(),
        deviations=(),
        text="format: 1\n",
    )
    return expand(study, 1)


def machine_of_fakes(plan: Plan, there: tuple[TestHost, ...], home: Path, stack: ExitStack) -> Machine:
    """The last of the hosts is the client's."""
    layout = Layout(home)
    ledger = SqliteLedger(layout.ledger)
    reached_hosts = [stack.enter_context(closing(NamespaceHost(each))) for each in there]
    reached = {host.name: Reached(host, Layout(Path("/var/lib/tare")), None) for host in reached_hosts}
    *servers, client = reached_hosts
    nodes = tuple(servers) if len(servers) > 1 else ()
    site = Site(servers[0], client, nodes=nodes, addresses={each.name: each.measured for each in there})
    machine = site_machine(plan, site, reached, Home(fake_image, ImageStore(layout, ledger), ledger))
    parts = {name: replace(part, prepare=fake_image) for name, part in machine.parts.items()}
    return replace(
        machine, deployments={"fake": FakeDeployment}, own=replace(machine.own, prepare=fake_image), parts=parts
    )


def measured(pair: tuple[TestHost, ...], below: Path) -> RunRecord:
    plan, staging = plan_of_one_run(), below / "staging"
    staging.mkdir()
    with ExitStack() as stack:
        machine = machine_of_fakes(plan, pair, below / "home", stack)
        destination = Destination(str(staging), StudyState(), staging)
        ((record,),) = execute(plan, machine, destination, lambda _: None)
        assert [entry.ident for entry in machine.ledger.entries() if not entry.keep] == []
    return record


def test_a_run_between_two_hosts_has_its_clocks_wire_and_both_traces(
    pair: tuple[TestHost, ...], tmp_path: Path
) -> None:
    record = measured(pair, tmp_path)
    assert record.outcome.reason is None
    between = record.between
    assert between is not None
    assert between.one_boot is True
    assert between.after is not None
    assert abs(between.after.clocks.offset_s) <= between.after.clocks.bound_s
    assert received_by(between, "sut") > 100
    assert set(record.monitors or {}) == {"probe", "client-host"}
    for host in pair:
        assert hosts.ssh(host, "ls", "/var/lib/tare/work").stdout == ""
