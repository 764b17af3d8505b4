"""What virtual machines of SUT and client are refused for, at the keys that clash, with what to write instead."""

from __future__ import annotations

from typing import Any

import pytest

from tare.errors import StudyError
from tare.study.model import LimitsSpec, Placement, StorageSpec, SutSpec, VmSpec
from tare.study.protocol_spec import DuetSpec, InterleaveSpec
from tare.study.reading.load import loads
from tare.study.registry import installed
from tare.study.rules.placement import refuse_machine
from tare.study.rules.refusal import Refusal
from tare.study.values import NetworkKind

REGISTRY = installed()

STUDY = """\
format: 1
name: machines
question: What does a virtual machine cost?
sut: {image: mariadb, database: mariadb, deployment: bare, limits: {memory: 512M}}
client: {image: sysbench, deployment: bare}
workload: {name: sysbench, script: oltp_read_only, threads: 1, measure_s: 5}
factors:
  model:
    sets: [sut.deployment, sut.network, sut.vm.cache]
    levels:
      bare: {}
      vm: {sut.deployment: vm, sut.network: user}
      vm-cached: {sut.deployment: vm, sut.network: tap, sut.vm.cache: writeback}
baseline: {model: bare}
"""


OUTSIDE = {"deployment": "bare", "network": NetworkKind.HOST}
INSIDE = {"deployment": "vm-container", "network": NetworkKind.USER, "limits": LimitsSpec(memory="512M")}


def asked(client: dict[str, Any] | None = None, protocol: str = "interleave", **sut: Any) -> Refusal | None:
    usual = {
        "image": "i",
        "database": "mariadb",
        "deployment": "vm",
        "network": NetworkKind.USER,
        "limits": LimitsSpec(memory="512M"),
    }
    placed = Placement(**{"image": "i", "deployment": "bare", **(client or {})})
    spec = DuetSpec(name="duet") if protocol == "duet" else InterleaveSpec()
    return refuse_machine(SutSpec(**{**usual, **sut}), placed, spec)


@pytest.mark.parametrize("network", [NetworkKind.USER, NetworkKind.TAP])
@pytest.mark.parametrize("client", ["bare", "container"])
def test_a_machine_is_reached_from_the_hosts_network(network: NetworkKind, client: str) -> None:
    assert asked({"deployment": client}, network=network) is None


@pytest.mark.parametrize("client", ["vm", "vm-container"])
def test_a_clients_machine_reaches_what_its_host_reaches(client: str) -> None:
    inside = {**INSIDE, "deployment": client}
    assert asked(inside) is None
    for network in (NetworkKind.HOST, NetworkKind.BRIDGE, NetworkKind.PUBLISHED_LOOPBACK):
        assert asked(inside, deployment="container", network=network) is None


@pytest.mark.parametrize(
    ("given", "key", "why"),
    [
        ({"network": NetworkKind.HOST}, "sut.network", "its own network"),
        ({"network": NetworkKind.PUBLISHED_LOOPBACK}, "sut.network", "its own network"),
        ({"limits": LimitsSpec(cpus="0")}, "sut.limits.memory", "the SUT has no memory limit"),
        ({"nodes": 3}, "sut.nodes", "not reach each other"),
        ({"vm": VmSpec(aio="native", cache="writeback")}, "sut.vm.aio", "bypass the host's page cache"),
        (
            {"limits": LimitsSpec(memory="1G", disk_iops=100), "vm": VmSpec(cache="unsafe")},
            "sut.vm.cache",
            "page cache does the writing",
        ),
        ({"storage": StorageSpec(kind="tmpfs")}, "sut.vm.cache", "O_DIRECT"),
        ({"storage": StorageSpec(cache="warmed")}, "sut.storage.cache", "machine's own"),
        ({"protocol": "duet"}, "sut.deployment", "a duet does"),
        ({"client": {**INSIDE, "network": NetworkKind.TAP}}, "client.network", "cannot reach any server"),
        ({"client": {**INSIDE, "network": NetworkKind.HOST}}, "client.network", "cannot reach any server"),
        ({"client": {**INSIDE, "limits": LimitsSpec()}}, "client.limits.memory", "the client has no memory limit"),
        ({**OUTSIDE, "client": INSIDE, "nodes": 3}, "client.deployment", "one address"),
        ({**OUTSIDE, "client": INSIDE, "protocol": "duet"}, "client.deployment", "a duet does"),
        ({"client": {"network": NetworkKind.TAP}}, "client.network", "is for virtual machines"),
        ({"client": {"deployment": "container", "network": NetworkKind.BRIDGE}}, "client.network", "not reach"),
        ({"client": {"network": NetworkKind.SHARED}}, "client.network", "cannot reach"),
        ({"deployment": "vm-container", "network": NetworkKind.BRIDGE}, "sut.network", "its own network"),
        ({"deployment": "vm-container", "nodes": 3}, "sut.nodes", "not reach each other"),
        ({"deployment": "bare"}, "sut.network", "`bare` is not one"),
        ({"deployment": "container", "network": NetworkKind.TAP}, "sut.network", "`container` is not one"),
        ({"deployment": "bare", "network": NetworkKind.HOST, "vm": VmSpec()}, "sut.vm", "has no effect"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(given: dict[str, Any], key: str, why: str) -> None:
    machine = asked(**given)
    assert machine is not None
    assert ".".join(str(part) for part in machine.keys[0]) == key
    assert why in machine.why
    assert machine.hint


def test_a_program_that_is_itself_the_sut_is_refused() -> None:
    sut = SutSpec(image="i", deployment="vm", network=NetworkKind.USER)
    refusals = refuse_machine(sut, None, InterleaveSpec())
    assert refusals is not None
    assert "needs no database" in refusals.why


@pytest.mark.parametrize("kind", ["layer", "volume"])
def test_a_machine_has_no_engine_that_could_give_it_storage(kind: str) -> None:
    text = STUDY.replace("vm: {sut.deployment: vm,", f"vm: {{sut.storage.kind: {kind}, sut.deployment: vm,")
    text = text.replace("sut.vm.cache]", "sut.vm.cache, sut.storage.kind]")
    with pytest.raises(StudyError, match=r"levels\.vm\.sut\.storage\.kind: `vm` has no engine"):
        loads(text, REGISTRY)


def test_a_container_in_a_machine_has_layers_and_no_volumes() -> None:
    text = STUDY.replace("vm: {sut.deployment: vm,", "vm: {sut.storage.kind: layer, sut.deployment: vm-container,")
    text = text.replace("sut.vm.cache]", "sut.vm.cache, sut.storage.kind]")
    arms = {arm.name: arm.settings.sut for arm in loads(text, REGISTRY).arms}
    assert (arms["vm"].deployment, arms["vm"].vm) == ("vm-container", VmSpec())
    with pytest.raises(StudyError, match=r"sut\.storage\.kind: `vm-container` has no engine"):
        loads(text.replace("kind: layer", "kind: volume"), REGISTRY)


def test_an_arm_has_a_machine_with_all_its_settings_or_none() -> None:
    arms = {arm.name: arm.settings.sut.vm for arm in loads(STUDY, REGISTRY).arms if not arm.control}
    assert arms == {"bare": None, "vm": VmSpec(), "vm-cached": VmSpec(cache="writeback")}


def test_a_clash_is_named_at_the_level_that_made_it() -> None:
    text = STUDY.replace("sut.network: user}", "sut.network: bridge}")
    with pytest.raises(StudyError, match=r"levels\.vm\.sut\.network: a virtual machine has its own network"):
        loads(text, REGISTRY)
    with pytest.raises(StudyError, match=r"levels\.bare\.sut\.vm\.cache: `vm` has no effect .*\(arm 'bare"):
        loads(STUDY.replace("bare: {}", "bare: {sut.vm.cache: none}"), REGISTRY)


@pytest.mark.parametrize("given", ["sut.vm.cache: always", "sut.vm.aio: posix", "sut.vm.disk: 16GB"])
def test_words_that_qemu_does_not_know_are_refused(given: str) -> None:
    key = given.partition(":")[0]
    text = STUDY.replace("sut.network: user}", f"sut.network: user, {given}}}").replace(
        "sut.vm.cache]", f"sut.vm.cache{'' if key.endswith('cache') else f', {key}'}]"
    )
    with pytest.raises(StudyError, match=key.replace(".", r"\.")):
        loads(text, REGISTRY)
