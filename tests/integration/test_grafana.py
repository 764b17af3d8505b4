"""What tare-probe serves is OpenMetrics, and every panel of the dashboard has an answer in a real Prometheus."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from uuid import uuid4

import pytest
from docker import DockerClient
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests.integration.lacking import left_out

from tare.images import Image
from tare.sites.binaries import PROBE, candidates
from tare.sites.local import own_process
from tare.sites.marks import LABEL
from tare.sites.process import to_ident

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "grafana" / "dashboards" / "tare-probe.json"
SCRAPING = ROOT / "grafana" / "prometheus.yml"
RATE_INTERVAL = "5s"
UP_S = 20.0
ANSWERS_S = 60.0
CALL_S = 5.0
PERIOD_US = 100_000
LOAD = "while :; do dd if=/dev/zero of=/data/x bs=64k count=16 conv=fsync 2>/dev/null; done"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def get(url: str) -> tuple[str, Message]:
    with urllib.request.urlopen(url, timeout=CALL_S) as answer:
        return answer.read().decode(), answer.headers


def wait_for(what: Callable[[], object], seconds: float) -> None:
    """Until a server that is not up yet answers."""
    end = time.monotonic() + seconds
    while not answers(what, last=time.monotonic() > end):
        time.sleep(0.1)


def answers(what: Callable[[], object], *, last: bool) -> bool:
    try:
        what()
    except (urllib.error.URLError, ConnectionError):
        if last:
            raise
        return False
    return True


@contextmanager
def running(*argv: str, log: Path) -> Iterator[None]:
    """A program that is stopped in the end; what it said is shown where something fails."""
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield
        except BaseException:
            print(f"{argv[0]}, exit code {process.poll()}: {log.read_text(errors='replace')[-2000:]}")  # noqa: T201 - shown where the test fails
            raise
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def serving(*targets: str, log: Path) -> Iterator[str]:
    """tare-probe over these targets; yields where it serves."""
    program = next((path for path in candidates(PROBE) if os.access(path, os.X_OK)), None)
    if program is None:
        left_out("there is no tare-probe: `make setup` makes it")
    address = f"127.0.0.1:{free_port()}"
    with running(program, "serve", "--prometheus", address, "--hz", "2", *targets, log=log):
        wait_for(lambda: get(f"http://{address}/metrics"), UP_S)
        yield address


def families(address: str) -> Mapping[str, Metric]:
    text, _ = get(f"http://{address}/metrics")
    parsed = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]  # prometheus_client is typed in part
    return {family.name: family for family in parsed}


def test_what_the_probe_serves_is_openmetrics(tmp_path: Path) -> None:
    with serving("--host", "--pid", f"tests={os.getpid()}", log=tmp_path / "log") as address:
        wait_for(lambda: get(f"http://{address}/metrics"), UP_S)
        time.sleep(1.5)
        text, headers = get(f"http://{address}/metrics")
        served = families(address)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(f"http://{address}/")
    assert headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert text.endswith("\n# EOF\n")
    for name, family in served.items():
        assert family.documentation, name
        assert family.type in ("counter", "gauge"), name
        assert family.unit in ("", "seconds", "bytes"), name
        assert not family.unit or name.endswith(family.unit), name
        for sample in family.samples:
            if name == "tare_process_pid":
                continue  # no reading, and so without its time
            assert sample.timestamp is not None, name
            assert abs(time.time() - float(sample.timestamp)) < 60, "the time at which the kernel was read"
    assert served["tare_process_cpu_seconds"].samples[0].labels["name"] == "tests"
    assert served["tare_process_resident_bytes"].samples[0].value > 2**20
    assert {sample.labels["name"] for sample in served["tare_cpu_user_seconds"].samples} >= {"all", "0"}


def expressions() -> list[str]:
    """All expressions of the dashboard, with Grafana's own variables filled in."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    found = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    assert found, "a dashboard without an expression would pass every test"
    filled = [text.replace("$name", ".*").replace("$__rate_interval", RATE_INTERVAL) for text in found]
    assert not [text for text in filled if "$" in text]
    return filled


class Prometheus:
    """A Prometheus that answers expressions."""

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(self, expression: str) -> Sequence[tuple[Mapping[str, str], float]]:
        """Labels and value of each series now."""
        query = urllib.parse.urlencode({"query": expression})
        text, _ = get(f"http://{self.address}/api/v1/query?{query}")
        return [(each["metric"], float(each["value"][1])) for each in json.loads(text)["data"]["result"]]

    def value(self, expression: str) -> float:
        (only,) = self.ask(expression)
        return only[1]


@pytest.fixture
def prometheus_program() -> str:
    program = shutil.which("prometheus")
    if program is None:
        left_out("no prometheus in PATH: scripts/packages.sh test installs it")
    return program


@contextmanager
def scraping(program: str, address: str, home: Path) -> Iterator[Prometheus]:
    """A Prometheus on a port and in a directory of its own, with the scrape configuration that comes with tare."""
    served = re.search(r"127\.0\.0\.1:\d+", SCRAPING.read_text())
    assert served is not None
    (home / "prometheus.yml").write_text(SCRAPING.read_text().replace(served.group(), address))
    own = f"127.0.0.1:{free_port()}"
    options = (
        f"--config.file={home / 'prometheus.yml'}",
        f"--storage.tsdb.path={home / 'data'}",
        f"--web.listen-address={own}",
        "--log.level=warn",
    )
    with running(program, *options, log=home / "log"):
        wait_for(lambda: get(f"http://{own}/-/ready"), UP_S)
        yield Prometheus(own)


@contextmanager
def loaded_container(engine: DockerClient, image: Image) -> Iterator[int]:
    """A container that writes and flushes, held to a twentieth of a CPU; yields its process."""
    container = engine.containers.run(
        str(image.engine_id),
        entrypoint=["/bin/sh", "-c"],
        command=[LOAD],
        name=f"tare-test-grafana-{uuid4().hex[:8]}",
        labels={LABEL: to_ident(own_process())},
        cpu_period=PERIOD_US,
        cpu_quota=PERIOD_US // 20,
        network_mode="none",
        user="0:0",
        detach=True,
    )
    try:
        container.reload()
        yield int(container.attrs["State"]["Pid"])
    finally:
        container.remove(force=True, v=True)


@pytest.mark.engine
@pytest.mark.apart
@pytest.mark.timeout(150)
def test_every_panel_of_the_dashboard_has_an_answer(
    engine: DockerClient, image: Image, prometheus_program: str, tmp_path: Path
) -> None:
    with (
        loaded_container(engine, image) as pid,
        serving("--host", "--cgroup", f"db=pid:{pid}", "--pid", f"db={pid},tree", log=tmp_path / "log") as address,
    ):
        home = tmp_path / "prometheus"
        home.mkdir()
        with scraping(prometheus_program, address, home) as prometheus:
            unanswered = expressions()
            end = time.monotonic() + ANSWERS_S
            while unanswered and time.monotonic() < end:
                time.sleep(1.0)
                unanswered = [text for text in unanswered if not prometheus.ask(text)]
            assert unanswered == [], "no series at all"
            time.sleep(1.0)
            for expression in expressions():
                values = [value for _, value in prometheus.ask(expression)]
                assert values, f"no series any more: {expression}"
                assert all(math.isfinite(value) for value in values), expression
                assert all(value >= 0 for value in values), expression
            assert prometheus.value('tare_cgroup_pids{name="db"}') >= 1
            assert prometheus.value(f'rate(tare_cgroup_usage_seconds_total{{name="db"}}[{RATE_INTERVAL}])') > 0
            assert prometheus.value('tare_cgroup_throttled_seconds_total{name="db"}') > 0
            assert prometheus.value('tare_cgroup_block_written_bytes_total{name="db"}') > 0
