"""What a plan needs of each host of a site is told of that host before anything is started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tare.errors import StudyError
from tare.monitors.fake import FakeMonitor
from tare.plan.model import Plan
from tare.requirements import HostPlan, Lack, Requirement, Use
from tare.run.between.site import refuse_between, with_swapped_hosts
from tare.run.requirements import PlugIns, uses_on
from tare.sites import Completed, Site
from tare.sites.fake import FakeHost
from tare.sites.layout import Layout
from tare.sites.local import LocalHost
from tare.study.model import LimitsSpec, MonitorSpec, PodSpec, StorageSpec
from tare.study.values import NetworkKind

FILES = {"/sys/devices/system/cpu/online": b"0-1\n", "/proc/meminfo": b"MemTotal:        4194304 kB\n"}
IDS = Completed(("id",), 0, b"0\n")
ROOM = Completed(("df",), 0, b"    Avail\n4000000000\n")


@pytest.fixture
def host() -> FakeHost:
    """Root, with two CPUs, 4 GiB of memory and 4 GB of disk."""
    return FakeHost("db", answers={("id", "-u"): IDS, ("df",): ROOM}, files=dict(FILES))


@pytest.fixture
def no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cluster is configured."""
    monkeypatch.setenv("KUBECONFIG", "/no/such/file")


@pytest.fixture
def plan(plans: Any) -> Plan:
    """One arm: a container for a server, and a bare client."""
    plan: Plan = plans(arms=("boxed",))
    return changed(plan, {"deployment": "container", "network": NetworkKind.HOST}, {"deployment": "bare"})


def changed(plan: Plan, sut: dict[str, Any], client: dict[str, Any] | None, **settings: Any) -> Plan:
    """The plan with other values of its one arm; no client where `None`."""
    (arm,) = plan.study.arms
    parts: dict[str, Any] = {"sut": arm.settings.sut.model_copy(update=sut), "client": None, **settings}
    if client is not None:
        assert arm.settings.client is not None
        parts["client"] = arm.settings.client.model_copy(update=client)
    other = arm.model_copy(update={"settings": arm.settings.model_copy(update=parts)})
    return plan.model_copy(update={"study": plan.study.model_copy(update={"arms": (other,)})})


PLUG_INS = PlugIns(monitors={"probe": FakeMonitor()})


def lacking_on(host: FakeHost, uses: tuple[Use, ...], plug_ins: PlugIns = PLUG_INS, **known: Any) -> list[str]:
    """What a host of the site lacks, by requirement and reason."""
    there = HostPlan(host, Layout(Path("/srv/tare")), uses, in_sites=True)
    return list(plug_ins.blockers(replace(there, **known), 1))


def of_server(plan: Plan, host: FakeHost, plug_ins: PlugIns = PLUG_INS, **known: Any) -> list[str]:
    """What the server's host lacks."""
    return lacking_on(host, uses_on(plan, (Site(host, FakeHost("load")),))["db"], plug_ins, **known)


def test_a_host_that_has_everything_lacks_nothing(plan: Plan, host: FakeHost) -> None:
    assert of_server(plan, host) == []


@pytest.mark.usefixtures("no_cluster")
@pytest.mark.parametrize(
    ("sut", "name", "why"),
    [
        ({"limits": LimitsSpec(cpus="1-3")}, "CPUs", "limits.cpus '1-3' names CPU 2,3, but this host has 0,1"),
        (
            {"limits": LimitsSpec(memory="5G")},
            "memory",
            "arm boxed may use 5.0 GiB of memory by its limits, but this host has 4",
        ),
        ({"engine": "podman"}, "engine podman", "it cannot be selected by name there; leave `engine` out of the"),
        ({"storage": StorageSpec(kind="nfs")}, "NFS", ""),
        ({"deployment": "pod"}, "cluster", ""),
        ({"network": NetworkKind.POD, "pod": PodSpec()}, "pods", "the CNI plug-in bridge is in none of"),
    ],
)
def test_what_the_server_s_host_lacks_is_named(
    plan: Plan, host: FakeHost, sut: dict[str, Any], name: str, why: str
) -> None:
    host.answers["test", "-x"] = Completed(("test",), 1)
    problem = of_server(changed(plan, sut, {}), host)[0]
    assert problem.startswith(f"{name}, needed by ")
    assert problem.partition(" (arms: boxed): ")[2].startswith(why)


def test_what_doctor_names_and_no_run_can_do_without_is_named(plan: Plan, host: FakeHost) -> None:
    host.answers |= {("id", "-u"): Completed(("id",), 0, b"1000\n"), ("sh", "-c"): Completed(("sh",), 1)}
    host.answers["test",] = Completed(("test",), 1)
    problems = of_server(changed(plan, {"deployment": "bare"}, {}), host, data_bytes=5e9)
    assert {each.partition(",")[0] for each in problems} == {"home", "python3", "disk", "root"}
    assert any("needs about 5.5 GB of disk, but 4.0 GB are free" in each for each in problems)
    assert any("give the host another `home` in sites.yaml" in each for each in problems)


def test_a_user_over_ssh_needs_the_engine_alone_where_all_are_containers(plan: Plan, host: FakeHost) -> None:
    host.answers["id", "-u"] = Completed(("id",), 0, b"1000\n")
    assert of_server(plan, host) == []
    (problem,) = of_server(changed(plan, {"storage": StorageSpec(kind="layer")}, {}), host)
    assert problem.startswith("root, needed by bare tasks")
    assert "(arms: boxed): this user is not root; log in as root or give it `sudo: true`, or run a study" in problem
    (problem,) = of_server(changed(plan, {"network": NetworkKind.MACVLAN}, {}), host)
    assert problem.startswith("root between hosts, needed by `macvlan` and `ipvlan` between hosts (arms: boxed): ")


def test_what_a_user_over_ssh_cannot_do_is_named_on_the_host_where_it_is_placed(plan: Plan, host: FakeHost) -> None:
    """The server of the one arm is a container, its client bare."""
    other = FakeHost("load", answers=dict(host.answers), files=dict(FILES))
    for each in (host, other):
        each.answers["id", "-u"] = Completed(("id",), 0, b"1000\n")
    uses = uses_on(plan, (Site(host, other),))
    assert lacking_on(host, uses["db"]) == []
    (problem,) = lacking_on(other, uses["load"])
    assert problem.startswith("root, needed by bare tasks")


def test_an_engine_that_reaches_no_files_of_others_is_named(
    plan: Plan, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.answers["id", "-u"] = Completed(("id",), 0, b"1000\n")
    monkeypatch.setattr("tare.requirements.engines.why_no_sidecar", lambda *_: "it mounts nothing")
    who = "files of containers, needed by containers of a user who is not root (arms: boxed)"
    assert of_server(plan, host) == [f"{who}: it mounts nothing"]


def test_an_engine_that_does_not_answer_is_named_where_containers_are_placed(plan: Plan, host: FakeHost) -> None:
    why = "nobody answers"
    assert of_server(plan, host, no_engine=why) == [f"engine, needed by containers (arms: boxed): {why}"]
    assert of_server(changed(plan, {"deployment": "bare"}, {}), host, no_engine=why) == []


def test_a_monitor_that_runs_cannot_do_without_is_named_for_the_server_s_host(plan: Plan, host: FakeHost) -> None:
    class Blind(FakeMonitor):
        needs: ClassVar[tuple[Requirement, ...]] = (
            Requirement("eye", "the monitor `eye`", "not at all", "", lambda _: [Lack("no eyes")]),
        )

    plug_ins = PlugIns(monitors={"probe": FakeMonitor(), "eye": Blind()})
    watched = changed(plan, {}, {}, monitors={"eye": MonitorSpec()})
    assert of_server(watched, host, plug_ins) == ["the monitor eye cannot run (arms: boxed): no eyes"]
    spared = changed(plan, {}, {}, monitors={"eye": MonitorSpec(optional=True)})
    assert of_server(spared, host, plug_ins) == []


def test_the_client_s_host_is_asked_for_what_the_client_needs(plan: Plan) -> None:
    load = FakeHost("load", answers={("id", "-u"): IDS, ("df",): ROOM}, files=dict(FILES))
    limited = changed(plan, {"limits": LimitsSpec(cpus="7")}, {"limits": LimitsSpec(cpus="9")})
    uses = uses_on(limited, (Site(FakeHost("db"), load),))["load"]
    (problem,) = lacking_on(load, uses, no_engine="nobody answers", data_bytes=1e12)
    assert "names CPU 9, but this host has 0,1" in problem


@pytest.mark.parametrize(("address", "is_own"), [("127.0.0.1", True), ("::1", True), ("192.0.2.1", False)])
def test_an_address_on_no_interface_is_told(plan: Plan, host: FakeHost, address: str, *, is_own: bool) -> None:
    def asked(argv: Sequence[str], _: bytes) -> Completed:
        return LocalHost().run(argv, timeout_s=60, check=False)

    host.answers["python3", "-I", "-S", "-c"] = asked
    problems = of_server(plan, host, address=address)
    assert problems == [] if is_own else "none of its interfaces has the address 192.0.2.1; set" in problems[0]


def test_hosts_that_change_places_are_asked_for_both(plan: Plan) -> None:
    site = Site(FakeHost("db"), FakeHost("load"))
    placed = uses_on(plan, (site, with_swapped_hosts(site)))
    assert {name: len(uses) for name, uses in placed.items()} == {"db": 2, "load": 2}
    assert all(len([use for use in uses if use.settings is not None]) == 1 for uses in placed.values())


@pytest.mark.parametrize("client", [{}, None])
def test_a_machine_is_refused_between_hosts_with_and_without_a_client(
    plan: Plan, client: dict[str, Any] | None
) -> None:
    machine = changed(plan, {"deployment": "vm", "network": NetworkKind.USER}, client)
    with pytest.raises(StudyError, match="the arm boxed is in a virtual machine, which tare starts only on"):
        refuse_between(machine, Site(FakeHost("db"), FakeHost("load")))
