"""A whole look at one server: traps, evidence, what was not read, and nothing secret."""

from __future__ import annotations

import json

import pytest
from tests.unit.inspection.machine import ATTRS, PID, STATUS, machine, subject
from tests.unit.inspection.test_groups import OF_V1

from tare.calibrate.summary import Identity
from tare.errors import StudyError
from tare.inspection.gather import gather
from tare.inspection.readings import Readings
from tare.inspection.study import study_of
from tare.inspection.text import as_tree, lines
from tare.inspection.verdict import Verdict, in_units, shown, verdict
from tare.inspection.watch import Counters, between, conntrack_drops, disk_of_data, flushes_of, printed_bytes
from tare.knowledge.claim import load_claims
from tare.knowledge.unit_costs import UnitCost, UnitCosts
from tare.sites import Completed
from tare.study.reading.load import loads
from tare.study.registry import built_in
from tare.traps.facts import FACTS
from tare.traps.trap import load_traps

TRAPS = load_traps()
CLAIMS = load_claims()
OVERLAY = "100 1 0:50 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/var/lib/docker/overlay2/x/diff,workdir=/w\n"


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


def test_this_machines_unit_costs_are_told_where_it_was_weighed() -> None:
    cost = UnitCost(
        deployment="container", client="bare", network="published-loopback", load="busy", quantity="machine-cpu",
        us=29.8, se=1.4, low=26.7, high=32.9, n=8,
    )  # fmt: skip
    identity = Identity(cpu_model="x", cpu_count=2, memory_gib=4, kernel="6", engine="docker", engine_version="25")
    weighed = UnitCosts(tare="1", identity=identity, measured_at=0.0, digest="d", costs=(cost,))
    looked = verdict(subject(), gather(machine(), subject()), TRAPS, weighed=weighed)
    met = {each.known.id: each.here for each in looked.met}
    assert met["docker-proxy"] == cost
    assert met["shm-64m"] is None
    assert "   here        +29.8 µs [26.7, 32.9] of CPU time a request and its reply (tare" in "\n".join(
        lines(looked, 80)
    )
    (shown_trap,) = [each for each in as_tree([looked])["servers"][0]["met"] if each["trap"] == "docker-proxy"]
    assert shown_trap["cost"]["here_us"] == {"point": 29.8, "low": 26.7, "high": 32.9, "n": 8}


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
            if engine == "podman-rootless":  # whose bridge ends at a program
                assert looked.facts["net.mtu"] == "none"


def test_without_root_an_engine_tells_the_namespace_and_a_proxy_at_loopback() -> None:
    host = machine(**{f"__proc__{PID}__net__tcp": "", f"__proc__{PID}__net__route": ""})
    host.linked = {}
    modes = {"bridge": True, "host": False, "container:ab": None, "": None}
    for mode, own in modes.items():
        attrs = {**ATTRS, "HostConfig": {**ATTRS["HostConfig"], "NetworkMode": mode}}
        assert gather(host, subject(attrs=attrs)).facts["net.own_namespace"] is own
    attrs = {**ATTRS, "HostConfig": {**ATTRS["HostConfig"], "NetworkMode": "bridge"}}
    everywhere = {**attrs, "NetworkSettings": {"Ports": {"5432/tcp": [{"HostIp": "0.0.0.0"}]}}}
    unread = gather(host, subject(attrs=everywhere))
    assert unread.facts["net.path"] is None  # a proxy may hold connections
    assert unread.facts["net.mtu"] is None


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


def test_conntrack_drops_are_of_all_cpus() -> None:
    head = "entries  clashres found insert_failed drop early_drop icmp_error\n"
    rows = "0000015b  00000000 00000000 00000000 0000000a 00000001 00000000\n" * 2
    assert conntrack_drops(head + rows) == 22
    assert conntrack_drops("") is None


def test_flushes_are_of_the_whole_disk_under_the_layers_of_an_overlay() -> None:
    mounts = "1 0 254:1 / / rw - ext4 /dev/vda1 rw\n"
    host = machine(**{"__proc__self__mountinfo": mounts, f"__proc__{PID}__mountinfo": OVERLAY})
    host.answers["readlink", "-f"] = Completed(("readlink",), 0, b"/sys/devices/pci0/virtio1/block/vda/vda1\n")
    assert disk_of_data(host, subject()) == "vda"
    stats = " 254 0 vda 1 0 8 1 2 0 16 1 0 1 2 0 0 0 0 59661 5781\n 254 1 vda1 1 0 8 1 2 0 16 1 0 1 2 0 0 0 0 0 0\n"
    assert flushes_of(stats, "vda") == (59661, 5781)
    assert flushes_of(" 8 0 sda 1 0 8 1 2 0 16 1 0 1 2\n", "sda") is None
    in_memory = machine(**{f"__proc__{PID}__mountinfo": "1 0 0:5 / / rw - tmpfs tmpfs rw\n"})
    assert disk_of_data(in_memory, subject()) == ""


def test_what_a_container_printed_is_what_its_parent_read_whatever_the_log_driver() -> None:
    shim = {"__proc__7__comm": "containerd-shim", "__proc__7__io": "rchar: 12345\nwchar: 1\n"}
    stat = {f"__proc__{PID}__stat": f"{PID} (postgres) S 7 0"}
    assert printed_bytes(machine(**shim, **stat), subject()) == 12345
    logged = machine(**stat)
    logged.answers["stat", "-c", "%s"] = Completed(("stat",), 0, b"99\n")
    assert printed_bytes(logged, subject(attrs={**ATTRS, "LogPath": "/log"})) == 99
    assert printed_bytes(machine(**stat), subject()) is None


def test_slow_flushes_and_dropped_packets_are_traps_under_load() -> None:
    readings = Readings()
    none = Counters(0, (0, 0), 0, 0, 0, 0, 0, 0, 0, "vda", (100, 1000))
    between(none, Counters(10, (0, 0), 0, 0, 0, 0, 0, 0, 3, "vda", (110, 1500)), readings)
    assert (readings.facts["load.conntrack_drops"], readings.facts["load.flush_ms"]) == (3, 50.0)
    met = {each.known.id for each in verdict(subject(), readings, TRAPS, watched=True).met}
    assert {"slow-flush-under-load", "conntrack-drops-under-load"} <= met
    between(none, Counters(10, (0, 0), 0, 0, 0, 0, 0, 0, 0, "vda", (100, 1000)), readings)
    assert readings.facts["load.flush_ms"] == "none"


def test_a_program_that_is_no_known_database_leaves_their_traps_open() -> None:
    readings = gather(machine(program="myserver", command="myserver"), subject("myserver"))
    looked = verdict(subject("myserver"), readings, TRAPS)
    left = {each.known.id: each.lacks for each in looked.undecided}
    assert "database" in left["shm-64m"]
    assert "log-unlimited" in {each.known.id for each in looked.met}
    assert "max-map-count-low" not in {each.known.id for each in looked.met}


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
