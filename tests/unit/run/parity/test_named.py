"""A refused difference speaks by the name of the trap that it is, with its remedy."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.run.parity.test_compare import SERVER, observation, record, study

from tare.record.observation import Observation
from tare.run.parity.compare import as_sentence, differences
from tare.run.parity.named import FACTS_OF
from tare.run.parity.properties import host_readings, readings
from tare.traps.facts import FACTS

FILTERED = {"seccomp": "2", "seccomp_forbids": "io_uring_setup mbind", "links_io_uring": "yes"}


def refusal(**changes: Any) -> str:
    usual = record("host", host={"clocksource": "tsc"})
    return as_sentence(
        differences(study(), usual, record("bridge", **{"host": {"clocksource": "tsc"}, **changes}), SERVER)
    )


@pytest.mark.parametrize(
    ("changes", "trap", "remedy"),
    [
        ({"sut": {"limits": {"Max open files": "1024 1024"}}}, "nofile-low", "Raise the limit for the container."),
        ({"host": {"clocksource": "hpet"}}, "slow-clock", "Remedy: "),
    ],
)
def test_a_difference_names_its_trap_and_the_arm_that_meets_it(
    changes: dict[str, Any], trap: str, remedy: str
) -> None:
    sentence = refusal(**changes)
    assert f"[{trap}]" in sentence
    assert "Known trap: bridge: " in sentence
    assert remedy in sentence


def test_a_difference_that_is_no_trap_names_none() -> None:
    assert refusal(sut={"cpu_weight": 512}) == "SUT: cpu weight: 1024 in host, 512 in bridge"
    assert "Known trap" not in refusal(sut={"limits": {"Max open files": "65000 65000"}})


def test_traps_that_the_difference_does_not_decide_are_not_named() -> None:
    """The arm meets `nofile-low` too, but that is what the study asked for."""
    low = {"limits": {"Max open files": "1024 1024"}, "cpu_weight": 512}
    sentence = as_sentence(
        differences(study(("sut.limits.nofile",)), record("host"), record("bridge", sut=low), SERVER)
    )
    assert sentence == "SUT: cpu weight: 1024 in host, 512 in bridge"


def test_another_filter_is_a_difference_between_containers_with_the_trap_s_name() -> None:
    both = {"seccomp": "2", "links_io_uring": "yes", "seccomp_forbids": "none"}
    unlike = differences(study(), record("host", sut=both), record("bridge", sut=FILTERED), SERVER)
    assert [each.name for each in unlike] == ["SUT: calls that the seccomp filter forbids"]
    assert "[io-uring-forbidden]" in as_sentence(unlike)
    digests = ({**both, "seccomp_digest": digest} for digest in ("sha256:1", "sha256:2"))
    one, other = (record(arm, sut=sut) for arm, sut in zip(("host", "bridge"), digests, strict=True))
    assert [each.name for each in differences(study(), one, other, SERVER)] == ["SUT: rules of the seccomp filter"]
    varied = study(("sut.confinement.seccomp",))
    assert differences(varied, one, other, SERVER) == ()


def test_properties_and_facts_that_are_joined_exist() -> None:
    assert {fact for facts in FACTS_OF.values() for fact in facts} <= FACTS.keys()
    observed = {
        name: "1"
        for name in Observation.__dataclass_fields__
        if Observation.__dataclass_fields__[name].default is None
    }
    limits = {f"Max {name}": "1 1" for name in ("open files", "locked memory", "processes")}
    fields = observation(
        **{**observed, **observation(), "limits": limits, "network_settings": {"net.core.somaxconn": "1"}}
    )
    fields |= {"capabilities": "1", "guest": None, "pod": None, "containerd": None}
    texts, lists = ("thp", "clocksource", "netfilter_conntrack"), ("cpu_governors", "proactive_reclaim")
    one = record("host", sut=fields, host={**dict.fromkeys(texts, "1"), **dict.fromkeys(lists, ("1",))})
    names = {each.name.removeprefix("SUT: ") for each in (*readings(one, "sut"), *host_readings(one))}
    of_run = ("variable ", "network path")
    for begins in FACTS_OF:
        assert begins.startswith(of_run) or any(name.startswith(begins) for name in names), begins
