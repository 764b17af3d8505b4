"""What no run would use is held to the rules as well: a mistake shows before the day when it is needed."""

from __future__ import annotations

import pytest

from tare.errors import StudyError
from tare.study.reading.load import loads
from tare.study.registry import Registry

ONLY = "    only: {path: [bare, host]}\n"
SCALES = ("  full: {}\n  demo:\n", f"  full:\n{ONLY}  demo:\n{ONLY}")


def unused(text: str, change: str) -> str:
    """The study whose scales all leave the level `bridge` out, with that level changed."""
    return text.replace(*SCALES).replace("bridge: {sut.network: bridge}", f"bridge: {{{change}}}")


def idle(text: str, old: str, new: str) -> str:
    """The study in which every level of `path` replaces what the template says of deployment and limits."""
    levels = "sut.deployment: container, sut.limits.cpus: '0'"
    text = text.replace("bare: {sut.deployment: bare}", "bare: {sut.deployment: bare, sut.limits.cpus: '0'}")
    text = text.replace("host: {}", f"host: {{{levels}}}")
    text = text.replace("{sut.network: bridge}", f"{{sut.network: bridge, {levels}}}")
    text = text.replace("{sut.network: published-loopback}", f"{{sut.network: published-loopback, {levels}}}")
    assert old in text
    return text.replace(old, new, 1)


def test_a_right_level_may_be_left_out_by_every_scale(text: str, registry: Registry) -> None:
    study = loads(unused(text, "sut.network: bridge"), registry)
    assert study.factors["path"] == ("bare", "host")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("sut.database: -1", "expected text"),
        ("sut.database: [1, 2]", "expected text"),
        ("sut.image: {}", "expected text"),
        ("sut.image: ../../etc", "not an image reference"),
        ("sut.deployment: train", "there is no deployment"),
        ("workload.threads: 0", "greater than 0"),
        ("sut.settings.socket: /run/x", "socket is not for studies"),
    ],
)
def test_a_wrong_level_is_refused_though_no_scale_keeps_it(
    text: str, registry: Registry, change: str, why: str
) -> None:
    changed = unused(text.replace("    sets: workload.threads", "    sets: workload.tables"), change)
    changed = changed.replace("  tables: 8\n", "")
    line = next(n for n, each in enumerate(changed.splitlines(), 1) if f"bridge: {{{change}}}" in each)
    with pytest.raises(StudyError, match=why) as caught:
        loads(changed, registry)
    assert caught.value.what.startswith(f"study.yaml:{line}:")
    assert "factors.path.levels.bridge" in caught.value.what


def test_levels_that_do_not_go_together_may_be_left_out(text: str, registry: Registry) -> None:
    factor = "  engine:\n    sets: sut.deployment\n    levels: [container, bare]\n"
    network = "  path:\n    sets: sut.network\n    levels: [host, bridge]\n"
    head = text.partition("factors:\n")[0]
    tail = "baseline: {engine: container, path: host}\nscales:\n"
    full = "  full:\n    only: {path: host}\n"
    study = loads(f"{head}factors:\n{factor}{network}{tail}{full}deviations: [None.]\n", registry)
    assert len(study.arms) == 2


def test_a_right_value_may_be_replaced_by_every_level(text: str, registry: Registry) -> None:
    study = loads(idle(text, "deployment: container", "deployment: bare"), registry)
    assert {arm.settings.sut.deployment for arm in study.arms} == {"bare", "container"}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("  deployment: container", '  deployment: "../../etc"', "sut.deployment: there is no deployment"),
        ("  deployment: container", "  deployment: true", "sut.deployment: expected text, got true"),
        ("  deployment: container", "  deployment: {}", "sut.deployment: expected text, got a mapping"),
        ('cpus: "0"', "cpus: [1, 2]", r"sut.limits.cpus: expected text, got a list"),
        ("  threads: 16", "  threads: many", "workload.threads: expected a whole number"),
        ("  threads: 16", "  threads: 0", "workload.threads: must be greater than 0"),
    ],
)
def test_a_wrong_value_is_refused_though_every_level_replaces_it(
    text: str, registry: Registry, old: str, new: str, why: str
) -> None:
    changed = idle(text, old, new)
    line = changed[: changed.index(new)].count("\n") + 1
    with pytest.raises(StudyError, match=why) as caught:
        loads(changed, registry)
    assert caught.value.what.startswith(f"study.yaml:{line}:")
