"""What pods need and a host has not is found before anything is started: plug-ins, iptables, nft, a route."""

from __future__ import annotations

from typing import Any

import pytest

from tare.deployments.pod.requirement import PODS
from tare.errors import HostSilent, RunFailed, TimedOut
from tare.requirements import HostPlan, Use
from tare.sites import Completed
from tare.sites.fake import Answer, FakeHost
from tare.study.model import ArmSettings, PodSpec, SutSpec
from tare.study.values import NetworkKind, Qos

CNI = "apt-get install containernetworking-plugins"
LACKING = "rules as kube-proxy's mode {} writes them need {}, which is missing (apt-get install {})"


def sut(network: str, pod: dict[str, Any] | None) -> SutSpec:
    spec = None if pod is None else PodSpec(**pod)
    return SutSpec(image="i", database="d", deployment="container", network=NetworkKind(network), pod=spec)


def host(*lacking: str) -> FakeHost:
    answers: dict[tuple[str, ...], Answer] = {("test", "-x"): Completed((), 1)}
    for plugin in ("bridge", "macvlan", "host-local", "portmap"):
        answers["test", "-x", f"/opt/cni/bin/{plugin}"] = Completed((), int(plugin in lacking))
    for program in lacking:
        answers[(program,)] = RunFailed(f"{program} cannot be run")
    return FakeHost(answers=answers)


def lacks(there: FakeHost, *suts: SutSpec) -> tuple[str, ...]:
    """What the host lacks for these servers."""
    uses = tuple(Use("pod", each, ArmSettings(sut=each, workload_name="w", workload={})) for each in suts)
    return tuple(str(each) for each in PODS.ask(HostPlan(there, uses=uses)))


@pytest.mark.parametrize(
    ("network", "pod", "lacking", "messages"),
    [
        ("cluster-ip", {}, (), []),
        ("pod", {}, ("portmap", "iptables", "nft"), []),
        ("bridge", {}, ("bridge", "host-local"), []),
        ("bridge", None, ("bridge", "host-local"), []),
        ("pod", {"cni": "macvlan"}, ("macvlan", "bridge"), [f"the CNI plug-in macvlan is in none of .* ({CNI})"]),
        ("pod", {}, ("host-local",), [f"the CNI plug-in host-local is in none of .* ({CNI})"]),
        ("host-port", {}, ("portmap", "iptables"), [
            f"the CNI plug-in portmap is in none of .* ({CNI})",
            LACKING.format("iptables", "iptables", "iptables"),
        ]),
        ("node-port", {"proxy": "nftables"}, ("iptables", "nft"), [
            LACKING.format("nftables", "nft", "nftables"),
        ]),
    ],
)  # fmt: skip
def test_each_program_that_is_missing_is_one_sentence(
    network: str, pod: dict[str, Any] | None, lacking: tuple[str, ...], messages: list[str]
) -> None:
    refusals = lacks(host(*lacking), sut(network, pod), sut(network, pod))
    directories = "/opt/cni/bin, /usr/lib/cni, /usr/libexec/cni"
    assert refusals == tuple(sentence.replace(".*", directories) for sentence in messages)


@pytest.mark.parametrize(("network", "is_needed"), [("cluster-ip", True), ("node-port", False), ("pod", False)])
def test_a_service_needs_a_route_to_its_address(network: str, *, is_needed: bool) -> None:
    """Found by `make chaos` on pods: 100 attempts failed at once with `Network is unreachable`."""
    alone = host()
    alone.answers = {**alone.answers, ("ip", "route", "get"): Completed((), 2)}
    refusals = lacks(alone, sut(network, {}))
    sentence = "no route leads to a Service's address (10.232.0.0/14), so that no client reaches it"
    assert [refusal.partition("; ")[0] for refusal in refusals] == ([sentence] if is_needed else [])


@pytest.mark.parametrize("error", [HostSilent("no process left"), TimedOut("ip did not end within 10 s")])
def test_a_host_that_cannot_be_asked_for_the_route_is_not_taken_for_one_without_ip(error: RunFailed) -> None:
    alone = host()
    alone.answers = {**alone.answers, ("ip", "route", "get"): error}
    with pytest.raises(type(error)):
        lacks(alone, sut("cluster-ip", {}))


def test_a_host_without_ip_is_told_of_when_a_pod_is_attached() -> None:
    alone = host()
    alone.answers = {**alone.answers, ("ip", "route", "get"): RunFailed("ip cannot be run")}
    assert lacks(alone, sut("cluster-ip", {})) == ()


def test_a_pod_of_a_cluster_needs_no_piece_of_tare_s() -> None:
    alone = host("bridge", "host-local", "iptables")
    alone.answers = {**alone.answers, ("ip", "route", "get"): Completed((), 2)}
    of_cluster = sut("cluster-ip", {"qos": Qos.BURSTABLE}).model_copy(update={"deployment": "pod"})
    assert lacks(alone, of_cluster) == ()
