"""Sysctls are for containers with a network namespace of their own: elsewhere they would be the host's."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.plan.expand import expand
from tare.study.reading.load import loads
from tare.study.registry import Registry


def with_level(text: str, level: str) -> str:
    return text.replace("      bridge: {sut.network: bridge}\n", f"      bridge: {{{level}}}\n")


@pytest.mark.parametrize(
    "level",
    ["sut.network: bridge, sut.sysctls.net.core.somaxconn: 128",
     "sut.network: bridge, sut.sysctls: {net.core.somaxconn: 128}"],
)  # fmt: skip
def test_a_level_sets_a_sysctl_by_its_own_name(text: str, registry: Registry, level: str) -> None:
    arms = {arm.name: arm.settings.sut for arm in loads(with_level(text, level), registry).arms}
    assert arms["bridge-load-1"].sysctls == {"net.core.somaxconn": 128}
    assert arms["host-load-1"].sysctls == {}


@pytest.mark.parametrize(
    ("level", "why"),
    [
        ("sut.network: bridge, sut.sysctls: {vm.swappiness: 1}", "vm.swappiness"),
        ("sut.network: bridge, sut.sysctls: {net.core/../x: 1}", r"net\.core"),
    ],
)
def test_other_settings_of_the_kernel_are_refused(text: str, registry: Registry, level: str, why: str) -> None:
    with pytest.raises(StudyError, match=why):
        loads(with_level(text, level), registry)


@pytest.mark.parametrize("deployment", ["bare", "container"])
def test_on_the_host_s_network_they_are_refused(text: str, registry: Registry, deployment: str) -> None:
    level = f"sut.deployment: {deployment}, sut.sysctls.net.core.somaxconn: 128"
    changed = text.replace("      host: {}\n", f"      other: {{{level}}}\n")
    with pytest.raises(StudyError, match="would be those of the host") as caught:
        loads(changed, registry)
    assert "factors.path.levels.other" in caught.value.what


def test_a_study_without_sysctls_keeps_its_plan(text: str, registry: Registry) -> None:
    study = loads(text, registry)
    assert "sysctls" in study.arms[0].settings.sut.model_dump()
    assert expand(study).digest == "47dd2792639dccfe484a62531df14f09f81412db9bd5f7bff317ad8a446d8244"
