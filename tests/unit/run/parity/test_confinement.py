"""Confinement and weight: declared, in force as the kernel tells, and compared."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.run.parity.test_compare import TOKEN, observation, parity, record, settings, study

from tare.run.parity.compare import differences
from tare.run.parity.declared import undeclared
from tare.study.model import LimitsSpec


@pytest.mark.parametrize(
    ("placed", "seen", "difference"),
    [
        ({"limits": LimitsSpec(cpu_weight=100)}, {}, None),
        ({"limits": LimitsSpec(cpu_weight=50)}, {}, "SUT: CPU weight: 50 declared (512 here), 1024 in force"),
        ({"limits": LimitsSpec(cpu_weight=50)}, {"cgroups": {"": f"/tare/{TOKEN}/x"}, "cpu_weight": 50}, None),
        (
            {"confinement": {"seccomp": "unconfined"}},
            {"seccomp": "2"},
            "SUT: seccomp: unconfined declared (mode 0), mode 2 in force",
        ),
        (
            {"confinement": {"seccomp": "/a.json"}},
            {"seccomp": "0"},
            "SUT: seccomp: /a.json declared (mode 2), mode 0 in force",
        ),
        ({"confinement": {"seccomp": "unconfined"}}, {"seccomp": "0"}, None),
        (
            {"confinement": {"capabilities": "none"}},
            {"capabilities": "00000000a80425fb"},
            "SUT: capabilities: none declared, 00000000a80425fb in force",
        ),
        ({"confinement": {"capabilities": "none"}}, {"capabilities": "0000000000000000"}, None),
        (
            {"confinement": {"capabilities": "all"}},
            {"capabilities": "00000000a80425fb"},
            "SUT: capabilities: all declared, 00000000a80425fb in force",
        ),
        ({"confinement": {"capabilities": "all"}}, {"capabilities": "000001ffffffffff"}, None),
        (
            {"confinement": {"no_new_privileges": True}},
            {"no_new_privileges": "0"},
            "SUT: no_new_privileges: declared, 0 in force",
        ),
        ({"confinement": {"no_new_privileges": True}}, {"no_new_privileges": "1"}, None),
    ],
)
def test_what_is_not_as_declared_is_named(
    placed: dict[str, Any], seen: dict[str, Any], difference: str | None
) -> None:
    in_force = parity(**seen)
    assert undeclared(settings("container", **placed), in_force, None, TOKEN) == (
        () if difference is None else (difference,)
    )


def test_capabilities_are_compared_only_where_both_records_have_them() -> None:
    kept = {"capabilities": "00000000a80425fb", "no_new_privileges": "0"}
    before, after = record("bridge", sut=observation()), record("bridge", sut=observation(**kept))
    assert differences(study(), before, after) == ()
    fewer = record("bridge", sut=observation(**{**kept, "capabilities": "0000000000000000"}))
    (difference,) = differences(study(), after, fewer)
    assert str(difference) == "SUT: capabilities: 00000000a80425fb in bridge, 0000000000000000 in bridge"
    varied = study(varies=("sut.confinement.capabilities",))
    other = fewer.model_copy(update={"levels": {"path": "host"}})
    assert differences(varied, after, other) == ()
