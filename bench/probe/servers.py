"""Monitors that serve what they read: how they are started, and what scrapes them."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import urllib.request
from collections.abc import Callable

NODE_EXPORTER_PORT = 19100
CADVISOR_PORT = 19101
SCRAPE_TIMEOUT_S = 10.0
UP_S, POLL_S = 20.0, 0.2


def node_exporter() -> list[str] | None:
    """How to start it, where it is installed."""
    program = shutil.which("prometheus-node-exporter")
    return [program, f"--web.listen-address=127.0.0.1:{NODE_EXPORTER_PORT}"] if program else None


def cadvisor(every: str) -> list[str] | None:
    """How to start the cAdvisor that $CADVISOR names; it reads at this fixed interval."""
    program = os.environ.get("CADVISOR")
    options = [
        "-listen_ip=127.0.0.1",
        f"-port={CADVISOR_PORT}",
        f"-housekeeping_interval={every}",
        "-jitter_factor=0",
        "-allow_dynamic_housekeeping=false",
    ]
    return [program, *options] if program else None


def metrics_of(port: int) -> str:
    """Where a server on this machine shows its metrics."""
    return f"http://127.0.0.1:{port}/metrics"


def scrape(port: int) -> Callable[[], bool]:
    """A function that fetches the metrics once, as Prometheus would, and returns whether it got any."""

    def fetch() -> bool:
        return bool(answer_of(metrics_of(port)))

    return fetch


def answer_of(url: str) -> str:
    """The answer of a server; empty while it is not up."""
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=SCRAPE_TIMEOUT_S) as answer:
        return str(answer.read().decode())
    return ""


def answers(ask: Callable[[], bool]) -> bool:
    """Whether a server comes to answer."""
    end = time.monotonic() + UP_S
    while not (there := ask()) and time.monotonic() < end:
        time.sleep(POLL_S)
    return there
