"""A whole look at one server: traps, evidence, what was not read, and nothing secret."""

from __future__ import annotations

import json

import pytest
from tests.unit.inspection.machine import PID, machine, subject
from tests.unit.inspection.test_groups import OF_V1

from tare.errors import StudyError
from tare.inspection.gather import gather
from tare.inspection.readings import Readings
from tare.inspection.study import study_of
from tare.inspection.text import as_tree, lines
from tare.inspection.verdict import Verdict, in_units, shown, verdict
from tare.inspection.watch import Counters, between
from tare.knowledge.claim import load_claims
from tare.study.reading.load import loads
from tare.study.registry import built_in
from tare.traps.facts import FACTS
from tare.traps.trap import load_traps

TRAPS = load_traps()
CLAIMS = load_claims()


@pytest.fixture
def looked() -> Verdict:
    host = machine()
    host.files |= {name: value.encode() for name, value in OF_V1.items()}
    return verdict(subject(), gather(host, subject()), TRAPS, CLAIMS)


def test_traps_are_met_with_the_value_and_where_it_was_read(looked: Verdict) -> None:
    met = {each.known.id: each for each in looked.met}
    assert {"shm-64m", "log-unlimited", "tag-latest", "docker-proxy", "quota-throttled", "ndots-5"} <= met.keys()
    assert "nofile-low" not in met  # PostgreSQL keeps few files open
    shm = met["shm-64m"].evidence["shm.bytes"]
    assert (shm.value, shm.where) == (64 << 20, f"/proc/{PID}/mountinfo: /dev/shm")
    assert [claim.id for claim in met["docker-proxy"].claims] == ["percona-2016-published-port"]
    assert "127.0.0.1" not in str(met["docker-proxy"].evidence["net.path"].value)


def test_the_text_fits_a_terminal_and_says_all(looked: Verdict) -> None:
    shown_lines = list(lines(looked, 80))
    pasted = {line for line in shown_lines for word in ("docker run", "docker update", "compose ", "kubernetes ")
              if word in line}  # fmt: skip
    assert [line for line in shown_lines if len(line) > 80 and line not in pasted and "host  " not in line] == []
    text = "\n".join(shown_lines)
    assert "/dev/shm of 64 MiB  [shm-64m]" in text
    assert "shm.bytes 64 MiB" in text
    assert "throughput -69.0 % (percona-2016-published-port)" in text
    assert "docker update --cpus 2 db" in text
    assert "--watch 30s" in text
    assert "Not read: " in text


def test_no_secret_is_in_text_or_json(looked: Verdict) -> None:
    assert "hunter2" not in "\n".join(lines(looked)) + json.dumps(as_tree([looked]))


def test_json_has_every_fact_with_its_place_or_the_reason(looked: Verdict) -> None:
    (server,) = as_tree([looked])["servers"]
    assert set(server["facts"]) <= set(FACTS)
    for name, fact in server["facts"].items():
        assert (fact["value"] is None) == (fact["why"] is not None), name
    asked = len(server["met"]) + len(server["fine"]) + len(server["undecided"]) + len(server["needs_watch"])
    assert asked == len(TRAPS)


def test_every_fact_is_read_by_a_look_or_a_watch() -> None:
    readings = gather(machine(), subject())
    between(Counters(0, (0, 0), 0, 0, 0, 0, 0, 0), Counters(1, (0, 0), 0, 0, 0, 0, 0, 0), readings)
    assert set(readings.known) == set(FACTS)


def test_where_nothing_is_found_it_says_so() -> None:
    readings = Readings()
    for known in TRAPS:
        for name, value in known.trap.examples.not_met[0].items():
            readings.put(name, value, "a test")
    fine = verdict(subject("nginx"), Readings(), [])
    assert list(lines(fine))[2] == "Nothing found."


def test_a_process_has_no_container_to_ask_about() -> None:
    alone = subject(placed="process", engine="none", attrs={})
    known = gather(machine(), alone).facts
    assert known["log.driver"] == known["runtime"] == known["image.tag"] == "none"
    asked = gather(machine(), subject(attrs={}, unasked="no engine answers"))
    assert asked.facts["log.driver"] is None
    assert asked.unread["log.driver"] == "no engine answers"


def test_what_happened_between_two_looks() -> None:
    readings = Readings()
    before = Counters(10.0, (100, 10), 0, 5, 1000, 1000, 50, 1000)
    between(before, Counters(20.0, (200, 60), 1, 9, 4000, 2000, 550, 2_001_000), readings)
    facts = readings.facts
    assert facts["load.throttled_share"] == 0.5
    assert (facts["load.oom_kills"], facts["load.listen_overflows"]) == (1, 4)
    assert facts["load.run_queue_share"] == 0.25
    assert facts["load.proxy_cpus"] == 0.5
    assert facts["load.log_bytes_per_s"] == 200_000
    watched = verdict(subject(), readings, TRAPS, watched=True)
    assert {"oom-kills-under-load", "run-queue-wait", "docker-proxy-under-load"} <= {
        each.known.id for each in watched.met
    }
    between(Counters(0, None, None, None, None, None, None, None), before, readings)
    assert readings.facts["load.throttled_share"] is None


@pytest.mark.parametrize("known", [each for each in TRAPS if each.trap.study], ids=lambda each: each.id)
def test_each_study_that_a_trap_offers_can_be_read(known: object) -> None:
    trap = next(each for each in TRAPS if each is known)
    databases = trap.trap.hits.databases or ("redis",)
    database = next(
        (name for name in databases if name in {"postgresql", "mariadb", "redis", "cassandra"}), "redis"
    )
    study = loads(study_of(trap, database), built_in())
    assert len(study.arms) == len(trap.trap.study)


def test_a_trap_that_no_study_can_vary_is_refused() -> None:
    without = next(each for each in TRAPS if not each.trap.study)
    with pytest.raises(StudyError, match="no study can vary"):
        study_of(without, "redis")
    with pytest.raises(StudyError, match="no image and workload"):
        study_of(next(each for each in TRAPS if each.trap.study), "nginx")


def test_values_are_shown_in_their_units() -> None:
    assert in_units(64 << 20) == "64 MiB"
    assert in_units(0) == "0 B"
    assert shown("cgroup.throttled_share", 0.246) == "24.6 %"
    assert shown("net.own_namespace", True) == "yes"
    assert shown("host.cpu_governors", ("a", "b")) == "a, b"
