"""A factor says what it varies, and a name of a network is kept."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.study.reading.load import loads
from tare.study.registry import Registry
from tare.study.values import CgroupPlace

PATH = "  path:\n    levels:\n"


def changed(registry: Registry, text: str, old: str, new: str) -> object:
    assert old in text
    return loads(text.replace(old, new), registry)


def test_a_factor_of_one_key_varies_that_key(registry: Registry, text: str) -> None:
    assert loads(text, registry).varies["load"] == ("workload.threads",)


def test_a_factor_without_sets_varies_where_things_run_and_nothing_else(registry: Registry, text: str) -> None:
    text = text.replace("host: {}", "host: {sut.settings.a: 1}")
    assert set(loads(text, registry).varies["path"]) == {"sut.deployment", "sut.network"}


def test_a_level_may_set_no_key_that_its_factor_does_not_name(registry: Registry, text: str) -> None:
    new = "  path:\n    sets: [sut.deployment]\n    levels:\n"
    with pytest.raises(StudyError, match=r"factors.path.levels.bridge.* is not among the keys that 'path' sets"):
        changed(registry, text, PATH, new)


def test_a_buffer_pool_of_its_own_in_one_level_is_refused_by_name(registry: Registry, text: str) -> None:
    text = text.replace(PATH, "  path:\n    sets: [sut.deployment, sut.network]\n    levels:\n")
    wrong = text.replace("{sut.network: bridge}", "{sut.network: bridge, sut.settings.innodb_buffer_pool_size: 1G}")
    assert loads(text, registry).varies["path"] == ("sut.deployment", "sut.network")
    with pytest.raises(StudyError, match=r"innodb_buffer_pool_size is not among"):
        loads(wrong, registry)


def test_a_key_that_no_level_sets_is_refused(registry: Registry, text: str) -> None:
    new = "  path:\n    sets: [sut.deployment, sut.network, sut.image]\n    levels:\n"
    with pytest.raises(StudyError, match=r"no level sets sut\.image"):
        changed(registry, text, PATH, new)


def test_a_published_port_may_not_call_itself_bridge(registry: Registry, text: str) -> None:
    with pytest.raises(StudyError, match=r"the level 'bridge' has sut.network: published-loopback"):
        changed(registry, text, "{sut.network: bridge}", "{sut.network: published-loopback}")


def test_a_client_s_network_may_give_a_level_its_name(registry: Registry, text: str) -> None:
    text = text.replace("  load:\n    sets: workload.threads\n    levels: [1, 16]\n", "").replace(
        "exclude:\n  - {path: published, load: 1}\n", ""
    )
    text = text[: text.index("factors:")] + (
        "factors:\n  side:\n    sets: client.network\n    levels: [host, shared]\nbaseline: {side: host}\n"
    )
    study = loads(text.replace("  network: host\n", "  network: bridge\n"), registry)
    assert [arm.name for arm in study.arms] == ["host", "shared"]


def test_a_bare_sut_may_stand_in_the_root_cgroup_without_limits(registry: Registry, text: str) -> None:
    text = text.replace("bare: {sut.deployment: bare}", "bare: {sut.deployment: bare, sut.cgroup: root}")
    with pytest.raises(StudyError, match="the root cgroup cannot have limits"):
        loads(text, registry)
    free = text.replace('  limits: {cpus: "0", memory: 512M}\n', "")
    assert loads(free, registry).arms[0].settings.sut.cgroup is CgroupPlace.ROOT
    assert "sut.cgroup" not in loads(free, registry).varies["path"]


def test_a_container_cannot_stand_in_the_root_cgroup(registry: Registry, text: str) -> None:
    with pytest.raises(StudyError, match="`container` cannot be in the root cgroup"):
        changed(registry, text, "host: {}", "host: {sut.cgroup: root}")
