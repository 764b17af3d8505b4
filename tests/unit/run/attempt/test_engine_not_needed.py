"""An engine that no arm needs may go away meanwhile: found in a study of bare arms, where later runs failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from docker import DockerClient
from requests.exceptions import ConnectionError as Broken

from tare.deployments import Instance, Task
from tare.deployments.fake import FakeDeployment
from tare.deployments.network.bridge import network_name, remove_bridge
from tare.deployments.shared_resources import SharedResources
from tare.errors import EngineSilent
from tare.images.image_store import ImageStore
from tare.record.engine_facts import EngineFacts
from tare.record.run_record import RunRecord
from tare.requirements import Requirement
from tare.requirements.engines import ENGINE
from tare.run.between.site import Home, Reached, site_machine
from tare.run.local import Engine, local_machine
from tare.run.machine import facts_reader
from tare.sites import Host, Site
from tare.sites.fake import FakeHost
from tare.sites.layout import Layout
from tare.sites.ledger import Kind, Ledger
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

GONE = Broken("Connection aborted.", FileNotFoundError(2, "No such file or directory"))


class Leaving:
    """An engine that answers until it is gone."""

    base_url = "http://elsewhere"
    gone = False

    @property
    def api(self) -> Leaving:
        return self

    def version(self) -> dict[str, Any]:
        return self._said({"Version": "28.0", "Components": [{"Name": "Engine", "Version": "28.0"}]})

    def info(self) -> dict[str, Any]:
        return self._said({"CgroupDriver": "cgroupfs"})

    @property
    def networks(self) -> Any:
        return self._said({})

    def _said(self, what: dict[str, Any]) -> dict[str, Any]:
        if self.gone:
            raise GONE
        return what


def client(engine: Leaving) -> DockerClient:
    return cast("DockerClient", engine)


class Unneeding(FakeDeployment):
    """Asks its engine, if it has one, as bare tasks do for the driver of control groups."""

    def __init__(self, host: Host, ledger: Ledger, engine: DockerClient | None = None) -> None:
        super().__init__(host, ledger, engine)
        self._shared = SharedResources(host, ledger, engine)

    def start(self, task: Task) -> Instance:
        assert not self._shared.rootless
        return super().start(task)


class Needing(FakeDeployment):
    needs: ClassVar[tuple[Requirement, ...]] = (ENGINE,)


def test_later_runs_go_on_without_it_and_keep_its_facts(rig: Any, plans: Any) -> None:
    engine, plan = Leaving(), plans(blocks=3)
    deployments = {"fake": Unneeding}
    machine = local_machine(plan, Engine(client(engine), None), None, rig.machine.layout, deployments)
    rig.swap(engine=machine.own.engine, engine_facts=machine.own.engine_facts, deployments=deployments)
    rig.events = Leave(engine)
    records: list[RunRecord] = rig.execute(plan)
    assert [(record.outcome.ok, record.outcome.reason) for record in records] == [(True, None)] * 3
    assert {record.engine and record.engine.engine_version for record in records} == {"28.0"}
    assert engine.gone


class Leave(list[Any]):
    """Events; with the first, the engine goes away."""

    def __init__(self, engine: Leaving) -> None:
        super().__init__()
        self._engine = engine

    def append(self, event: Any) -> None:
        self._engine.gone = True
        super().append(event)


def test_it_is_given_to_deployments_where_an_arm_needs_it(rig: Any, plans: Any) -> None:
    engine = client(Leaving())
    machine = local_machine(plans(), Engine(engine, None), None, rig.machine.layout, {"fake": Needing})
    assert machine.own.engine is engine


@pytest.mark.parametrize(("deployment", "given"), [(Needing, True), (Unneeding, False)])
def test_the_same_holds_between_hosts(deployment: Any, *, given: bool, plans: Any, tmp_path: Path) -> None:
    hosts, engine, layout = (FakeHost("a"), FakeHost("b")), client(Leaving()), Layout(tmp_path)
    ledger = SqliteLedger(layout.ledger)
    site = Site(sut=hosts[0], client=hosts[1], addresses={"a": "192.0.2.1", "b": "192.0.2.2"})
    reached = {host.name: Reached(host, layout, engine) for host in hosts}
    home = Home(lambda _: pytest.fail("no image is wanted"), ImageStore(layout, ledger), ledger)
    machine = site_machine(plans(), site, reached, home, None, {"fake": deployment})
    assert [machine.own.engine is engine, machine.parts["b"].engine is engine] == [given, given]


def test_one_that_is_needed_is_asked_for_its_facts_each_time() -> None:
    engine = Leaving()
    read = facts_reader(client(engine), LocalHost(), needed=True)
    assert (read() or EngineFacts()).engine == "docker"
    engine.gone = True
    with pytest.raises(Broken):
        read()


def test_one_that_is_not_needed_and_gone_already_has_no_facts() -> None:
    engine = Leaving()
    engine.gone = True
    assert facts_reader(client(engine), LocalHost(), needed=False)() is None


def test_a_task_that_ends_asks_nothing_of_an_engine_that_made_no_network(tmp_path: Path) -> None:
    engine, ledger = Leaving(), SqliteLedger(tmp_path / "ledger.sqlite")
    engine.gone = True
    remove_bridge(client(engine), ledger, "local", "tare/x")
    ledger.note(Kind.NETWORK, network_name("tare/x"))
    with pytest.raises(EngineSilent, match="the engine on local does not answer for the network tare-x: No such"):
        remove_bridge(client(engine), ledger, "local", "tare/x")
    assert [each.ident for each in ledger.entries()] == ["tare-x"]
