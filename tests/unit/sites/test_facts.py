"""Facts of hosts and engines: read from what kernels and engines really print, missing where they print nothing."""

from __future__ import annotations

import errno
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import docker
import pytest
from pydantic import TypeAdapter

from tare.deployments.cgroup.hierarchy import CgroupKind, Cgroups
from tare.deployments.observe import observe
from tare.errors import HostSilent, RunFailed, TimedOut, host_failed
from tare.record.host_facts import HostFacts
from tare.sites import Completed
from tare.sites.engine import engine_facts
from tare.sites.facts import host_facts
from tare.sites.fake import FakeHost
from tare.sites.local import LocalHost
from tare.sites.reading import answer, chosen, cpu_list, number, runs, table, text

ROOT = Path(__file__).resolve().parents[3]
INFO = json.loads((ROOT / "tests" / "data" / "docker-20.10-info.json").read_text())
VERSION = json.loads((ROOT / "tests" / "data" / "docker-20.10-version.json").read_text())


class Engine:
    """Answers as an engine at a Unix socket did."""

    def __init__(
        self,
        info: Mapping[str, Any] = INFO,
        version: Mapping[str, Any] = VERSION,
        podman: Mapping[str, Any] | None = None,
    ) -> None:
        """`podman`: what its own API answers; `None`: it does not serve it."""
        self._info, self._version, self._podman = info, version, podman
        self.api = self
        self.timeout = 60
        self.base_url = "http+docker://localhost"

    def info(self) -> Mapping[str, Any]:
        return self._info

    def version(self) -> Mapping[str, Any]:
        return self._version

    def get(self, url: str, timeout: float) -> SimpleNamespace:
        assert url.endswith("/libpod/info")
        assert timeout == self.timeout
        return SimpleNamespace(ok=self._podman is not None, json=lambda: self._podman)


def client(engine: Engine | None = None) -> docker.DockerClient:
    return cast("docker.DockerClient", engine or Engine())


def machine(**files: str) -> FakeHost:
    """A host with the given files; `__` stands for `/` in names of arguments."""
    return FakeHost(files={"/" + name.replace("__", "/"): content.encode() for name, content in files.items()})


def test_a_host_that_shows_nothing_has_no_facts_rather_than_zeros() -> None:
    facts = asdict(host_facts(FakeHost()))
    known = {key for key, value in facts.items() if value is not None}
    assert known == {"name", "boot_id", "data_path", "in_container"}


def test_facts_of_this_machine_are_read_back_as_they_were_written() -> None:
    facts = host_facts(LocalHost(), data_path="/tmp")
    assert TypeAdapter(HostFacts).validate_json(json.dumps(asdict(facts))) == facts
    assert (facts.cpu_count or 0) >= 1
    assert (facts.memory_total_bytes or 0) > 2**20
    assert facts.data_free_bytes is not None


def test_turbo_is_the_reverse_of_no_turbo() -> None:
    host = machine(sys__devices__system__cpu__intel_pstate__no_turbo="1\n")
    assert host_facts(host).cpu_turbo is False


def test_turbo_without_intel_pstate_is_boost() -> None:
    host = machine(sys__devices__system__cpu__cpufreq__boost="1\n")
    assert host_facts(host).cpu_turbo is True


def test_steal_is_the_eighth_column_and_guest_time_is_not_counted_twice() -> None:
    host = machine(proc__stat="cpu  100 0 100 700 0 0 0 100 50 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    facts = host_facts(host)
    assert facts.cpu_steal_s == 1.0
    assert facts.cpu_steal_fraction == pytest.approx(0.1)


def test_governors_of_all_cpus_are_listed_once() -> None:
    host = machine(
        sys__devices__system__cpu__online="0-2\n",
        sys__devices__system__cpu__cpu0__cpufreq__scaling_governor="powersave\n",
        sys__devices__system__cpu__cpu1__cpufreq__scaling_governor="performance\n",
        sys__devices__system__cpu__cpu2__cpufreq__scaling_governor="powersave\n",
    )
    assert host_facts(host).cpu_governors == ("performance", "powersave")


@pytest.mark.parametrize(
    ("action", "state", "module", "expected"),
    [
        ("pageout", "on", None, ("kdamond 1",)),
        ("pageout", "off", "N", ()),
        ("stat", "on", "Y", ("damon_reclaim",)),
        ("pageout", "on", "Y", ("kdamond 1", "damon_reclaim")),
    ],
)
def test_threads_that_page_out_by_themselves_are_told(
    action: str, state: str, module: str | None, expected: tuple[str, ...]
) -> None:
    damon = "/sys/kernel/mm/damon/admin/kdamonds"
    files = {
        f"{damon}/nr_kdamonds": "2\n",
        f"{damon}/0/state": "on\n",
        f"{damon}/0/contexts/nr_contexts": "0\n",
        f"{damon}/1/state": f"{state}\n",
        f"{damon}/1/contexts/nr_contexts": "1\n",
        f"{damon}/1/contexts/0/schemes/nr_schemes": "2\n",
        f"{damon}/1/contexts/0/schemes/0/action": "lru_prio\n",
        f"{damon}/1/contexts/0/schemes/1/action": f"{action}\n",
    }
    if module is not None:
        files["/sys/module/damon_reclaim/parameters/enabled"] = f"{module}\n"
    host = FakeHost(files={name: content.encode() for name, content in files.items()})
    assert host_facts(host).proactive_reclaim == expected


class Busy(FakeHost):
    """A host whose kernel refuses to read one file some times, as while another program reads it."""

    refusals = 0

    def read(self, path: str) -> bytes | None:
        if path.endswith("/state") and self.refusals:
            self.refusals -= 1
            raise host_failed(f"{path} cannot be read", errno.EBUSY, "Device or resource busy")
        return super().read(path)


@pytest.mark.parametrize(("refusals", "expected"), [(3, ("kdamond 0",)), (1000, None)])
def test_a_thread_whose_state_another_program_reads_is_asked_again_and_never_taken_for_off(
    refusals: int, expected: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tare.sites.facts._BETWEEN_TRIES_S", 0.0)
    damon = "/sys/kernel/mm/damon/admin/kdamonds"
    files = {
        f"{damon}/nr_kdamonds": b"1\n",
        f"{damon}/0/state": b"on\n",
        f"{damon}/0/contexts/nr_contexts": b"1\n",
        f"{damon}/0/contexts/0/schemes/nr_schemes": b"1\n",
        f"{damon}/0/contexts/0/schemes/0/action": b"pageout\n",
    }
    host = Busy(files=files)
    host.refusals = refusals
    assert host_facts(host).proactive_reclaim == expected


def test_the_timer_frequency_comes_from_the_compressed_configuration() -> None:
    host = FakeHost(files={"/proc/config.gz": gzip.compress(b"# CONFIG_HZ_100 is not set\nCONFIG_HZ=250\n")})
    assert host_facts(host).kernel_hz == 250


def test_a_damaged_configuration_gives_no_timer_frequency() -> None:
    assert host_facts(FakeHost(files={"/proc/config.gz": b"not gzip"})).kernel_hz is None


def test_boot_arguments_that_do_not_bear_on_measurements_are_left_out() -> None:
    host = machine(proc__cmdline="quiet isolcpus=2-3 secret=abc mitigations=off intel_idle.max_cstate=1 tscx\n")
    assert host_facts(host).kernel_arguments == ("isolcpus=2-3", "mitigations=off", "intel_idle.max_cstate=1")


def test_the_scheduler_of_a_partition_is_that_of_its_disk() -> None:
    host = FakeHost(
        files={
            "/proc/self/mountinfo": b"30 1 8:1 / /data rw,noatime - ext4 /dev/sda1 rw,data=ordered\n",
            "/sys/dev/block/8:1/uevent": b"MAJOR=8\nMINOR=1\nDEVNAME=sda1\nDEVTYPE=partition\n",
            "/sys/dev/block/8:1/../queue/scheduler": b"[none] mq-deadline\n",
            "/sys/dev/block/8:1/../queue/rotational": b"0\n",
        },
        answers={("df",): Completed(("df",), 0, b"1B-blocks Avail Mounted on\n1000 400 /data\n")},
    )
    facts = host_facts(host, data_path="/data/tare")
    assert facts.data_filesystem == "ext4"
    assert facts.data_device == "sda1"
    assert facts.data_io_scheduler == "none"
    assert facts.data_rotational is False
    assert facts.data_free_bytes == 400
    assert facts.data_mount_options == ("data=ordered", "noatime", "rw")


def test_a_path_that_is_not_there_yet_is_judged_by_its_nearest_parent() -> None:
    def df(argv: object, stdin: bytes) -> Completed:
        there = list(cast("list[str]", argv))[-1] == "/"
        return Completed(("df",), 0 if there else 1, b"size avail on\n9 5 /\n" if there else b"")

    facts = host_facts(FakeHost(answers={("df",): df}), data_path="/no/such/place")
    assert (facts.data_mount_point, facts.data_free_bytes) == ("/", 5)


@pytest.mark.parametrize(
    ("mountinfo", "layout"),
    [
        ("30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "v2"),
        ("30 1 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "v1"),
        (
            (
                "30 1 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                "31 1 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
            ),
            "hybrid",
        ),
    ],
)
def test_the_cgroup_layout_is_told_from_the_mounts(mountinfo: str, layout: str) -> None:
    assert host_facts(machine(proc__self__mountinfo=mountinfo)).cgroup_layout == layout


def test_an_unreadable_file_is_a_missing_fact() -> None:
    class Locked(FakeHost):
        def read(self, path: str) -> bytes | None:
            raise RunFailed(f"{path} cannot be read")

    assert text(Locked(), "/proc/kcore") is None


def test_values_that_make_no_sense_are_missing() -> None:
    host = machine(a="many\n", b="always [madvise] never\n", c="plain\n", d="\n")
    assert number(host, "/a") is None
    assert chosen(host, "/b") == "madvise"
    assert chosen(host, "/c") == "plain"
    assert text(host, "/d") is None
    assert cpu_list("0-x") is None
    assert cpu_list("0-2,7") == (0, 1, 2, 7)
    assert table("k : 1\nk : 2\nno separator", ":") == {"k": "1"}


def test_docker_is_told_by_its_own_words() -> None:
    facts = engine_facts(client())
    assert facts.engine == "docker"
    assert facts.engine_storage_driver == "overlay2"
    assert facts.engine_cgroup_version == "1"
    assert facts.engine_image_store == "graphdriver"
    assert facts.engine_userland_proxy is None


def test_podman_is_told_from_its_components() -> None:
    version = {**VERSION, "Components": [{"Name": "Podman Engine", "Version": "4.9.3"}]}
    facts = engine_facts(client(Engine(version=version)), dockerd_host("--x"))
    assert (facts.engine, facts.engine_version) == ("podman", "4.9.3")
    assert facts.engine_userland_proxy is None
    assert not facts.engine_rootless


def test_podman_says_by_its_own_api_that_it_is_rootless() -> None:
    version = {**VERSION, "Components": [{"Name": "Podman Engine", "Version": "4.9.3"}]}
    info = {"host": {"security": {"rootless": True}, "idMappings": {"uidmap": [{"container_id": 0}]}}}
    facts = engine_facts(client(Engine(version=version, podman=info)))
    assert facts.engine_rootless
    assert facts.engine_id_maps == {"uidmap": [{"container_id": 0}]}


def test_the_containerd_image_store_is_told_from_the_drivers_status() -> None:
    info = {**INFO, "Driver": "overlayfs", "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]]}
    assert engine_facts(client(Engine(info))).engine_image_store == "containerd"


def dockerd_host(*arguments: str, **files: str) -> FakeHost:
    host = machine(run__docker_pid="", **files)
    host.files["/run/docker.pid"] = b"77\n"
    host.files["/proc/77/cmdline"] = "\0".join(("/usr/sbin/dockerd", *arguments, "")).encode()
    return host


@pytest.mark.parametrize(
    ("host", "proxy", "source"),
    [
        (dockerd_host("--userland-proxy=false"), False, "argument"),
        (dockerd_host("--userland-proxy"), True, "argument"),
        (dockerd_host(), True, "default"),
        (dockerd_host(etc__docker__daemon_json=""), True, "default"),
        (FakeHost(), None, None),
    ],
)
def test_the_userland_proxy_is_told_from_the_daemons_arguments(
    host: FakeHost, proxy: bool | None, source: str | None
) -> None:
    facts = engine_facts(client(), host)
    assert (facts.engine_userland_proxy, facts.engine_userland_proxy_from) == (proxy, source)


@pytest.mark.parametrize("arguments", [(), ("--config-file", "/else.json"), ("--config-file=/else.json",)])
@pytest.mark.parametrize(
    ("content", "proxy", "source"),
    [
        (b'{"userland-proxy": false}', False, "configuration"),
        (b'{"debug": true}', True, "default"),
        (b"{broken", None, None),
    ],
)
def test_the_userland_proxy_is_told_from_the_daemons_configuration(
    arguments: tuple[str, ...], content: bytes, proxy: bool | None, source: str | None
) -> None:
    host = dockerd_host(*arguments)
    host.files["/else.json" if arguments else "/etc/docker/daemon.json"] = content
    facts = engine_facts(client(), host)
    assert (facts.engine_userland_proxy, facts.engine_userland_proxy_from) == (proxy, source)


def test_an_engine_reached_over_a_network_keeps_its_proxy_unknown() -> None:
    engine = Engine()
    engine.base_url = "http://192.0.2.1:2375"
    assert engine_facts(client(engine), dockerd_host()).engine_userland_proxy is None


def test_a_recycled_pid_is_not_taken_for_the_daemon() -> None:
    host = dockerd_host("--userland-proxy=false")
    host.files["/proc/77/cmdline"] = b"/usr/bin/sleep\0100\0"
    assert engine_facts(client(), host).engine_userland_proxy is None


class OutOfFiles(FakeHost):
    """As a host answers that has no file and no process left for tare."""

    def read(self, path: str) -> bytes | None:
        raise host_failed(f"{path} cannot be read on {self.name}", errno.ENFILE, "Too many open files in system")

    def run(self, argv: Sequence[str], **_rest: Any) -> Completed:
        raise host_failed(f"{argv[0]} cannot be run on {self.name}", errno.EAGAIN, "no further process")


class Hanging(FakeHost):
    """Has programs that never end."""

    def run(self, argv: Sequence[str], **_rest: Any) -> Completed:
        raise TimedOut(f"{argv[0]} did not end within 10 s on {self.name} and was killed")


class Forbidding(OutOfFiles):
    """As a host answers a user who may read nothing."""

    def read(self, path: str) -> bytes | None:
        raise host_failed(f"{path} cannot be read on {self.name}", errno.EACCES, "Permission denied")


def test_a_fact_is_not_absent_because_the_host_could_not_be_asked() -> None:
    with pytest.raises(HostSilent, match="Too many open files"):
        text(OutOfFiles(), "/proc/cmdline")
    with pytest.raises(HostSilent, match="no further process"):
        answer(OutOfFiles(), ["df", "/"])
    with pytest.raises(HostSilent, match="no further process"):
        runs(OutOfFiles(), ["mmdebstrap", "--version"])
    assert text(Forbidding(), "/proc/cmdline") is None


def test_a_program_that_hangs_gives_no_absent_fact() -> None:
    with pytest.raises(TimedOut):
        answer(Hanging(), ["df", "/"])


def test_a_process_is_not_observed_by_halves_where_the_host_has_no_file_left() -> None:
    with pytest.raises(HostSilent, match="Too many open files"):
        observe(OutOfFiles(), Cgroups(CgroupKind.V2, ()), 1, ())
