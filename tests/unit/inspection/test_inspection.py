"""A whole look at one server: traps, evidence, what was not read, and nothing secret."""

from __future__ import annotations

import json

import pytest
from tests.unit.inspection.machine import ATTRS, PID, STATUS, machine, subject
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
    assert "A small /dev/shm  [shm-64m]" in text
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


def test_ports_of_a_rootless_container_are_carried_by_a_program() -> None:
    for mode, carrier in (
        ("slirp4netns", "rootlessport"),
        ("slirp4netns:port_handler=slirp4netns", "slirp4netns"),
        ("pasta", "pasta"),
        ("bridge", "rootlessport"),
    ):
        attrs = {**ATTRS, "HostConfig": {**ATTRS["HostConfig"], "NetworkMode": mode}}
        ports = {"5432/tcp": [{"HostIp": "", "HostPort": "5432"}]}
        attrs["NetworkSettings"] = {"Ports": ports}
        for engine, wanted in (("podman-rootless", carrier), ("podman", "dnat")):
            looked = gather(machine(), subject(engine=engine, attrs=attrs))
            assert looked.facts["net.path"] == wanted


def test_an_interface_whose_packets_a_program_reads_has_no_mtu_to_compare() -> None:
    route = "Iface Destination Gateway Flags RefCnt Use Metric Mask\ntap0 00000000 0 0 0 0 0 00000000\n"
    folder = f"__proc__{PID}__root__sys__class__net__tap0__"
    files = {f"__proc__{PID}__net__route": route, f"{folder}mtu": "65520", f"{folder}ifindex": "2"}
    by_program, veth = (machine(**files, **{f"{folder}iflink": link}) for link in ("2", "17"))
    assert gather(by_program, subject()).facts["net.mtu"] == "none"
    assert gather(veth, subject()).facts["net.mtu"] == 65520


@pytest.mark.parametrize(
    ("options", "version", "calls"),
    [
        (["seccomp=" + json.dumps({"defaultAction": "SCMP_ACT_ALLOW"})], "25.0.4", "none"),
        (
            [],
            "20.10.24",
            ("mbind", "set_mempolicy", "get_mempolicy", "move_pages", "perf_event_open", "userfaultfd"),
        ),
        (["seccomp=profile.json"], "25.0.4", None),
    ],
)
def test_a_filter_is_known_by_the_engine_s_options_where_its_configuration_is_not(
    options: list[str], version: str, calls: object
) -> None:
    attrs = {**ATTRS, "HostConfig": {**ATTRS["HostConfig"], "SecurityOpt": options}}
    known = gather(machine(), subject(attrs=attrs, engine_version=version)).facts["seccomp.forbids"]
    assert known == calls if not isinstance(calls, tuple) else set(calls) <= set(known)  # type: ignore[arg-type]  # a tuple then


def test_a_kernel_without_huge_pages_has_none_of_them_and_hides_nothing() -> None:
    plain = STATUS.replace("HugetlbPages:\t0 kB\n", "").replace("VmSwap:\t0 kB\n", "")
    known = gather(machine(**{f"__proc__{PID}__status": plain}), subject()).facts
    assert known["host.thp"] == "none"
    assert known["process.hugetlb_bytes"] == known["process.swap_bytes"] == known["host.huge_pages"] == 0
    gone = gather(machine(**{f"__proc__{PID}__status": ""}), subject())
    assert {"process.hugetlb_bytes", "process.swap_bytes"} <= gone.unread.keys()


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
    readings.put("net.path", "docker-proxy", "a test")
    met = {each.known.id for each in verdict(subject(), readings, TRAPS, watched=True).met}
    assert {"oom-kills-under-load", "docker-proxy-under-load", "quota-throttled-under-load"} <= met
    assert "run-queue-wait" not in met  # the quota, which has a trap of its own, holds the threads back
    between(before, Counters(20.0, (200, 10), 0, 5, 4000, 2000, 550, 1000), readings)
    assert "run-queue-wait" in {each.known.id for each in verdict(subject(), readings, TRAPS, watched=True).met}
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
