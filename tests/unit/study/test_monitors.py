from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tare.errors import StudyError
from tare.plan.expand import expand
from tare.study.model import MonitorSpec
from tare.study.reading.load import loads
from tare.study.registry import Registry

WATCHED = "monitors:\n  mpstat: {drop_first: 5, drop_last: 5}\n  docker-stats: {}\n"
VARIED = """  load:
    sets: [monitors.mpstat, monitors.docker-stats.interval_s]
    levels:
      1: {monitors.mpstat: null}
      16: {monitors.docker-stats.interval_s: 2}
"""
"""In place of a factor of the study that everything else in it builds on."""


@pytest.fixture
def knowing(registry: Registry) -> Registry:
    return replace(registry, monitors=frozenset({"probe", "mpstat", "docker-stats"}))


def test_a_study_names_its_monitors_and_they_reach_every_arm(text: str, knowing: Registry) -> None:
    study = loads(f"{text}\n{WATCHED}", knowing)
    wanted = {"mpstat": MonitorSpec(drop_first=5, drop_last=5), "docker-stats": MonitorSpec()}
    assert all(arm.settings.monitors == wanted for arm in study.arms)


def test_a_level_switches_a_monitor_off_or_sets_its_interval(text: str, knowing: Registry) -> None:
    varied = text.replace("  load:\n    sets: workload.threads\n    levels: [1, 16]\n", VARIED)
    assert varied != text
    fields: dict[str, Any] = {}
    for arm in loads(f"{varied}\n{WATCHED}", knowing).arms:
        fields[arm.levels["load"]] = arm.settings.monitors
    assert set(fields["1"]) == {"docker-stats"}
    assert set(fields["16"]) == {"mpstat", "docker-stats"}
    assert fields["16"]["docker-stats"].interval_s == 2


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("monitors:\n  mpstats: {}\n", "no monitor 'mpstats'.*mpstat"),
        ("monitors:\n  mpstat: {interval: 1}\n", "unknown key"),
        ("monitors:\n  mpstat: {interval_s: 0}\n", "greater than 0"),
        ("monitors:\n  mpstat: {drop_first: -1}\n", "at least 0"),
    ],
)
def test_a_monitor_that_is_not_there_or_ill_told_is_refused(
    text: str, knowing: Registry, written: str, words: str
) -> None:
    with pytest.raises(StudyError, match=words):
        loads(f"{text}\n{written}", knowing)


def test_a_plan_without_monitors_is_what_it_was_before_there_were_any(text: str, knowing: Registry) -> None:
    """A store that is half full must not be orphaned by a key that it does not use."""
    plain, empty = loads(text, knowing), loads(f"{text}\nmonitors: {{}}\n", knowing)
    assert expand(plain).digest == expand(empty).digest
    assert expand(plain).digest != expand(loads(f"{text}\n{WATCHED}", knowing)).digest
