"""A Dask scheduler as somebody else's process, and workers of fake sites that go to it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests import preloaded

from tare.run.fleet.cluster import Scheduler
from tare.run.fleet.site_process import Orders
from tare.sites.file import SiteSpec

FAKES = ("-m", "tests.unit.run.fleet.fake_site")
_START_S = 60.0


def started_scheduler(room: Path, *options: str, port: int = 0) -> tuple[subprocess.Popen[bytes], str]:
    """The process and its address, once it listens."""
    schedule_file = room / "scheduler.json"
    schedule_file.unlink(missing_ok=True)
    argv = [
        sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port),
        "--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(schedule_file), *options,
    ]  # fmt: skip
    with (room / "scheduler.log").open("ab") as log:
        process = preloaded.Popen(argv, stdout=log, stderr=log, cwd=room)
    end = time.monotonic() + _START_S
    while time.monotonic() < end and process.poll() is None:
        with suppress(OSError, ValueError):
            return process, str(json.loads(schedule_file.read_text())["address"])
        time.sleep(0.05)
    process.kill()
    raise AssertionError((room / "scheduler.log").read_text())


def started_worker(scheduler: Scheduler, site: str, command: Sequence[str] = FAKES) -> subprocess.Popen[bytes]:
    """The process of a site, which goes to that scheduler."""
    spec = SiteSpec(name=site, sut="local", client="local")
    orders = Orders(scheduler.address, spec.model_dump(mode="json"), scheduler.security)
    process = preloaded.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(vars(orders)).encode() + b"\n")
    process.stdin.flush()
    return process


@contextmanager
def ended(processes: list[subprocess.Popen[bytes]]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """End them all, whatever happens; more may be added meanwhile."""
    try:
        yield processes
    finally:
        for process in processes:
            if process.stdin is not None:
                process.stdin.close()
            process.terminate()
        for process in processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()
            process.wait()


def tls_files(room: Path) -> tuple[Path, Path, Path]:
    """Authority, certificate and key of a cluster, as files."""
    from distributed.security import Security

    made = Security.temporary()
    texts = {"ca.pem": made.tls_ca_file, "cert.pem": made.tls_client_cert, "key.pem": made.tls_client_key}
    for name, text in texts.items():
        (room / name).write_text(str(text))
    return room / "ca.pem", room / "cert.pem", room / "key.pem"
