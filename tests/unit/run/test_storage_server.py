"""What serves an arm's data is watched and counted beside the SUT."""

from __future__ import annotations

from dataclasses import replace

from tare.deployments import Endpoint, Instance, Task
from tare.images import Image, ImageConfig
from tare.monitors import WatchedProcess
from tare.run.clock import SystemClock
from tare.run.monitoring.processes import processes_on
from tare.run.usage.cpu import Meter
from tare.sites import Completed, Output, Process
from tare.sites.fake import FakeHost

TASK = Task("t", Image("i", "d", "/", None, ImageConfig()), ("true",), Output("/o", "/e"), "tare/x")


def instance(process: Process) -> Instance:
    return Instance(TASK, "bare", process, container_id=None, address="127.0.0.1", published=None)


def worked(host: FakeHost, process: Process, ticks: int) -> None:
    """Give a process user time (field 14 of /proc/PID/stat)."""
    name, _, rest = host.files[f"/proc/{process.pid}/stat"].decode().rpartition(")")
    fields = rest.split()
    fields[11] = str(ticks)
    host.files[f"/proc/{process.pid}/stat"] = f"{name}) {' '.join(fields)}\n".encode()


def test_it_stands_in_the_trace_with_all_that_it_starts() -> None:
    host = FakeHost()
    server = host.spawn("ganesha.nfsd")
    assert WatchedProcess("storage", server.pid, tree=True) in processes_on(host, {}, [server])
    assert not [each for each in processes_on(host, {}) if each.name == "storage"]


def test_its_time_is_told_apart() -> None:
    host = FakeHost()
    sut, client, *servers = (host.spawn() for _ in range(4))
    meter = Meter(host, SystemClock(), (instance(sut),), {host.name: tuple(servers)})
    meter.begin(instance(client))
    worked(host, servers[0], 150)
    worked(host, servers[1], 50)
    used = meter.end([None], None)
    assert used is not None
    assert used.storage_cpu_s == 2.0
    assert used.proxy_cpu_s is None


def test_one_that_has_ended_or_is_another_leaves_it_unknown() -> None:
    for change in ("ended", "another", "none"):
        host = FakeHost()
        sut, client, server = (host.spawn() for _ in range(3))
        named = replace(server, started_ticks=1) if change == "another" else server
        meter = Meter(host, SystemClock(), (instance(sut),), {} if change == "none" else {host.name: (named,)})
        meter.begin(instance(client))
        if change == "ended":
            host.end(server)
        used = meter.end([None], None)
        assert used is not None
        assert used.storage_cpu_s is None, change


def test_a_proxy_that_is_seen_only_in_the_phase_is_charged_for_the_phase() -> None:
    """On a busy machine a short warm-up ends before its path is seen."""
    host = FakeHost()
    sut, client, proxy, other = (host.spawn() for _ in range(4))
    lines = f"{proxy.pid} docker-proxy\n{other.pid} docker-proxy\n".encode()
    host.answers["pgrep",] = Completed((), 0, lines)
    worked(host, proxy, 100)
    published = replace(instance(sut), published=Endpoint("127.0.0.1", 3306))
    meter = Meter(host, SystemClock(), (published,))
    meter.begin(instance(client))
    worked(host, proxy, 175)
    worked(host, other, 400)
    used = meter.end([None], None, {0: proxy})
    assert used is not None
    assert used.proxy_cpu_s == 0.75
