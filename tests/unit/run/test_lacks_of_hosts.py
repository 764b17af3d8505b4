"""What a plan needs of each host of a site is told of that host before anything is started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tare.deployments import Right
from tare.errors import StudyError
from tare.plan.model import Plan
from tare.run.between.lacks import Knowledge, Share, lacking_on, shares
from tare.run.between.site import Reached, refuse_between, with_swapped_hosts
from tare.sites import Completed, Site
from tare.sites.fake import FakeHost
from tare.sites.layout import Layout
from tare.sites.local import LocalHost
from tare.study.model import LimitsSpec, MonitorSpec, StorageSpec
from tare.study.values import NetworkKind

FILES = {"/sys/devices/system/cpu/online": b"0-1\n", "/proc/meminfo": b"MemTotal:        4194304 kB\n"}
IDS = Completed(("id",), 0, b"0\n")
ROOM = Completed(("df",), 0, b"    Avail\n4000000000\n")


@pytest.fixture
def host() -> FakeHost:
    """Root, with two CPUs, 4 GiB of memory and 4 GB of disk."""
    return FakeHost("db", answers={("id", "-u"): IDS, ("df",): ROOM}, files=dict(FILES))


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


def of_server(plan: Plan, host: FakeHost, known: Knowledge | None = None) -> list[str]:
    """What the server's host lacks."""
    share = shares(plan, (Site(host, FakeHost("load")),))["db"]
    return list(lacking_on(Reached(host, Layout(Path("/srv/tare")), None), share, known or Knowledge({})))


def test_a_host_that_has_everything_lacks_nothing(plan: Plan, host: FakeHost) -> None:
    assert of_server(plan, host) == []


@pytest.mark.parametrize(
    ("sut", "sentence"),
    [
        ({"limits": LimitsSpec(cpus="1-3")}, "limits.cpus '1-3' names CPU 2,3, but this host has 0,1"),
        (
            {"limits": LimitsSpec(memory="5G")},
            "arm boxed may use 5.0 GiB of memory by its limits, but this host has 4",
        ),
        ({"engine": "podman"}, "the engine `podman` cannot be selected by name there; leave `engine` out of the"),
        ({"storage": StorageSpec(kind="nfs")}, "the storage nfs is not available: "),
    ],
)
def test_what_the_server_s_host_lacks_is_told(
    plan: Plan, host: FakeHost, sut: dict[str, Any], sentence: str
) -> None:
    (problem,) = of_server(changed(plan, sut, {}), host)
    assert problem.startswith(sentence)


def test_what_doctor_names_and_no_run_can_do_without_is_told(plan: Plan, host: FakeHost) -> None:
    host.answers |= {("id", "-u"): Completed(("id",), 0, b"1000\n"), ("sh", "-c"): Completed(("sh",), 1)}
    host.answers["test",] = Completed(("test",), 1)
    problems = of_server(changed(plan, {"deployment": "bare"}, {}), host, Knowledge({}, disk_bytes=5e9))
    assert any(each.startswith("root is needed for bare tasks, pods, control groups") for each in problems)
    assert any(each.startswith("python3 is missing") for each in problems)
    assert any("needs about 5.5 GB of disk, but 4.0 GB are free" in each for each in problems)


def test_a_user_over_ssh_needs_the_engine_alone_where_all_are_containers(plan: Plan, host: FakeHost) -> None:
    host.answers["id", "-u"] = Completed(("id",), 0, b"1000\n")
    assert of_server(plan, host) == []
    (problem,) = of_server(changed(plan, {"storage": StorageSpec(kind="layer")}, {}), host)
    assert (
        "storages other than `bind` (arms: boxed); log in as root or give it `sudo: true`, or run a study"
        in problem
    )
    (problem,) = of_server(changed(plan, {"network": NetworkKind.MACVLAN}, {}), host)
    assert problem.startswith(
        "root is needed to see whether `macvlan` or `ipvlan` carries the traffic (arms: boxed)"
    )


def test_what_a_user_over_ssh_cannot_do_is_told_of_the_host_where_it_stands(plan: Plan, host: FakeHost) -> None:
    """The server of the one arm is a container, its client bare."""
    other = FakeHost("load", answers=dict(host.answers), files=dict(FILES))
    for each in (host, other):
        each.answers["id", "-u"] = Completed(("id",), 0, b"1000\n")
    parts = shares(plan, (Site(host, other),))
    lacks = {
        each.name: list(lacking_on(Reached(each, Layout(Path("/srv/tare")), None), parts[each.name], Knowledge({})))
        for each in (host, other)
    }
    assert lacks["db"] == []
    (problem,) = lacks["load"]
    assert problem.startswith("root is needed for bare tasks")


def test_an_engine_that_reaches_no_files_of_others_is_told(
    plan: Plan, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.answers["id", "-u"] = Completed(("id",), 0, b"1000\n")
    monkeypatch.setattr("tare.run.between.lacks.why_no_sidecar", lambda *_: "it mounts nothing")
    assert of_server(plan, host) == ["without root, the engine must reach its containers' files: it mounts nothing"]


def test_an_engine_that_does_not_answer_is_told_where_containers_stand(plan: Plan, host: FakeHost) -> None:
    known = Knowledge({"db": "nobody answers"})
    assert of_server(plan, host, known) == ["a container engine is needed: nobody answers"]
    assert of_server(changed(plan, {"deployment": "bare"}, {}), host, known) == []


def test_a_runtime_that_the_host_s_engine_lacks_is_told(
    plan: Plan, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tare.run.between.lacks.engine_facts", lambda _: {"engine_runtimes": ["runc"]})
    engine: Any = object()
    share = shares(changed(plan, {"runtime": "crun"}, {}), (Site(host, FakeHost("load")),))["db"]
    (problem,) = lacking_on(Reached(host, Layout(Path("/srv/tare")), engine), share, Knowledge({}))
    assert problem.startswith("the engine has no runtime `crun`, but runc")


def test_a_pod_that_the_host_cannot_make_is_told(
    plan: Plan, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tare.run.between.lacks.why_no_pods", lambda _, suts: [f"{len(list(suts))} lack bridge"])
    assert of_server(plan, host) == ["no pod can be made: 1 lack bridge"]


def test_a_cluster_that_takes_no_pods_there_is_told(
    plan: Plan, host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tare.run.between.lacks.why_no_cluster", lambda there, classes: f"{there.name} is no node")
    assert of_server(changed(plan, {"deployment": "pod"}, {}), host) == ["no pod can be made: db is no node"]


def test_a_monitor_that_runs_cannot_do_without_is_told_of_the_server_s_host(plan: Plan, host: FakeHost) -> None:
    class Blind:
        def why_unavailable(self, *_: object) -> str:
            return "no eyes"

    eye: Any = {"eye": Blind()}
    watched = changed(plan, {}, {}, monitors={"eye": MonitorSpec()})
    assert of_server(watched, host, Knowledge({}, monitors=eye)) == ["the monitor eye cannot run: no eyes"]
    spared = changed(plan, {}, {}, monitors={"eye": MonitorSpec(optional=True)})
    assert of_server(spared, host, Knowledge({}, monitors=eye)) == []


def test_the_client_s_host_is_asked_for_what_the_client_needs(plan: Plan) -> None:
    load = FakeHost("load", answers={("id", "-u"): IDS, ("df",): ROOM}, files=dict(FILES))
    limited = changed(plan, {"limits": LimitsSpec(cpus="7")}, {"limits": LimitsSpec(cpus="9")})
    share = shares(limited, (Site(FakeHost("db"), load),))["load"]
    reached = Reached(load, Layout(Path("/srv/tare")), None)
    (problem,) = lacking_on(reached, share, Knowledge({"load": "nobody answers"}, disk_bytes=1e12))
    assert "names CPU 9, but this host has 0,1" in problem
    assert Right.ENGINE not in Knowledge({}).deployments["bare"].needs  # else the engine would be asked for


@pytest.mark.parametrize(("address", "is_own"), [("127.0.0.1", True), ("::1", True), ("192.0.2.1", False)])
def test_an_address_on_no_interface_is_told(plan: Plan, host: FakeHost, address: str, *, is_own: bool) -> None:
    def asked(argv: Sequence[str], _: bytes) -> Completed:
        return LocalHost().run(argv, timeout_s=30, check=False)

    host.answers["python3", "-I", "-S", "-c"] = asked
    problems = of_server(plan, host, Knowledge({}, addresses={"db": address}))
    assert problems == [] if is_own else "none of its interfaces has the address 192.0.2.1; set" in problems[0]


def test_hosts_that_change_places_are_asked_for_both(plan: Plan) -> None:
    site = Site(FakeHost("db"), FakeHost("load"))
    each = shares(plan, (site, with_swapped_hosts(site)))
    assert {name: len(share.placed) for name, share in each.items()} == {"db": 2, "load": 2}
    assert all(isinstance(share, Share) and len(share.served) == 1 for share in each.values())


@pytest.mark.parametrize("client", [{}, None])
def test_a_machine_is_refused_between_hosts_with_and_without_a_client(
    plan: Plan, client: dict[str, Any] | None
) -> None:
    machine = changed(plan, {"deployment": "vm", "network": NetworkKind.USER}, client)
    with pytest.raises(StudyError, match="the arm boxed is in a virtual machine, which tare starts only on"):
        refuse_between(machine, Site(FakeHost("db"), FakeHost("load")))
