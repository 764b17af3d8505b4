"""The highest rate at which each monitor delivers readings, and what it cannot see at any rate."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection
from socket import AF_UNIX, SOCK_STREAM, socket

from bench.probe.servers import answer_of, answers

SOCKET = "/var/run/docker.sock"
CALL_S = 10.0

CANNOT_SEE = {
    "tare-probe": "single requests; children that start and end within a second; block I/O of groups where neither "
    "tracing nor the kernel's files have it",
    "docker stats": "the host, dockerd and docker-proxy; throttling, pressure, steal; disk I/O on control groups "
    "v1 without a throttle rule",
    "mpstat": "who uses the CPUs; memory, disks, networks",
    "iostat": "who reads and writes; CPUs one by one, networks",
    "sar": "any container or process",
    "pidstat": "containers as such: their limits, throttling, page cache, networks; children between two readings",
    "node_exporter": "any container or process",
    "cAdvisor": "steal; processes outside control groups; disk I/O on control groups v1 without a throttle rule; "
    "pressure on hybrid hierarchies, which it shows as 0",
}
"""By the first word or words of the tool's name."""

WHOLE_SECONDS_HZ = 1.0
"""sysstat takes whole seconds only: `mpstat 0.5` ends with its usage."""


def cannot_see(tool: str) -> str:
    """What this tool does not show."""
    return next((text for name, text in CANNOT_SEE.items() if tool.startswith(name)), "")


class _Unix(HTTPConnection):
    """HTTP over the engine's socket."""

    def connect(self) -> None:
        self.sock = socket(AF_UNIX, SOCK_STREAM)
        self.sock.settimeout(CALL_S)
        self.sock.connect(SOCKET)


def docker_stats_hz(container: str, seconds: float) -> float:
    """Readings a second in the engine's stream, the first left out, which has no reading before it."""
    connection = _Unix("engine")
    connection.request("GET", f"/containers/{container}/stats?stream=true")
    answer = connection.getresponse()
    read: set[str] = set()
    try:
        answer.readline()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            read.add(str(json.loads(answer.readline())["read"]))
    finally:
        connection.close()
    return len(read) / seconds


@contextlib.contextmanager
def serving(command: Sequence[str], url: str) -> Iterator[None]:
    """A server of metrics that answers."""
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not answers(lambda: bool(answer_of(url))):
            raise SystemExit(f"{command[0]} does not answer at {url}, so how fast it can be asked is not known")
        yield
    finally:
        running.terminate()
        running.wait(CALL_S)


def scraped_hz(command: Sequence[str], url: str, seconds: float, stamped: str | None = None) -> float:
    """Different readings a second that a scraper gets when it asks without pause.

    `stamped` is a pattern of a sample that ends in the time of its reading; without it, a scrape is a reading.
    """
    seen: set[str] = set()
    with serving(command, url):
        began = time.monotonic()
        scrapes = 0
        while time.monotonic() < began + seconds:
            text = answer_of(url)
            scrapes += bool(text)
            if stamped and (stamp := re.search(stamped, text)):
                seen.add(stamp.group(1))
        return (len(seen) if stamped else scrapes) / (time.monotonic() - began)
