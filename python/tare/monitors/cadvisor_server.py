"""Run cAdvisor and a Prometheus that scrapes it, on free loopback ports, until stopped.

    python3 -I -S cadvisor_server.py DIRECTORY CADVISOR PROMETHEUS INTERVAL_S MOST_S

DIRECTORY/pids holds `PID NAME` lines and is read at the start and on each SIGHUP; DIRECTORY/server.json then holds
the control group of each, the address of Prometheus, and the time of two clocks. DIRECTORY/ready is made once a
scrape has succeeded. SIGTERM or MOST_S ends it; it fails if one of the two programs ends by itself.
"""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ANSWER_S, POLL_S, END_S = 5.0, 0.1, 20.0
SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)


def free_ports(count: int) -> list[int]:
    """Free ports of the loopback: all are opened before the first is closed."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def group_of(pid: int) -> str | None:
    """Control group under whose name cAdvisor knows a process: its cpuacct group on v1, its own on v2."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return None  # it has ended
    paths = {name: path for _, names, path in (line.split(":", 2) for line in lines) for name in names.split(",")}
    return paths.get("cpuacct", paths.get(""))


def add_groups(directory: Path, known: dict[str, str]) -> dict[str, str]:
    """Names with their control groups, new ones included; each name is looked up once, as pids are reused."""
    pairs = (line.split(" ", 1) for line in (directory / "pids").read_text().splitlines())
    new = {name: group_of(int(pid)) for pid, name in pairs if name not in known}
    return known | {name: group for name, group in new.items() if group is not None}


def cadvisor(program: str, port: int, interval_s: float) -> list[str]:
    """Command of cAdvisor; without the last two options it would not keep to its interval."""
    return [
        *(program, "-listen_ip=127.0.0.1", f"-port={port}", f"-housekeeping_interval={interval_s * 1000:.0f}ms"),
        *("-jitter_factor=0", "-allow_dynamic_housekeeping=false"),
    ]


def prometheus(program: str, directory: Path, port: int, target: int, interval_s: float) -> list[str]:
    """Command of a Prometheus that stores what it scrapes in DIRECTORY/tsdb."""
    every = f"{interval_s * 1000:.0f}ms"
    job = {"job_name": "cadvisor", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}
    config = {"global": {"scrape_interval": every, "scrape_timeout": every}, "scrape_configs": [job]}
    (directory / "prometheus.yml").write_text(json.dumps(config, indent=1))  # JSON is YAML
    return [
        *(program, f"--config.file={directory / 'prometheus.yml'}", f"--storage.tsdb.path={directory / 'tsdb'}"),
        *(f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"),
    ]


def scraped(address: str) -> bool:
    """Whether Prometheus has scraped cAdvisor successfully."""
    try:
        with urllib.request.urlopen(f"{address}/api/v1/query?query=up", timeout=ANSWER_S) as answer:  # noqa: S310 - http, as made here
            result = json.load(answer)["data"]["result"]
    except (OSError, ValueError):
        return False
    return any(each["value"][1] == "1" for each in result)


def start(directory: Path, name: str, argv: list[str]) -> subprocess.Popen[bytes]:
    """Start a program with its output in a file, and unblock the signals that are blocked in this process."""
    with (directory / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            argv,
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, ()),  # noqa: PLW1509 - one thread
        )


def end(servers: dict[str, subprocess.Popen[bytes]]) -> None:
    """End both programs, the scraper first."""
    for server in reversed(servers.values()):
        server.terminate()
        try:
            server.wait(END_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def serve(directory: Path, servers: dict[str, subprocess.Popen[bytes]], address: str, most_s: float) -> str | None:
    """Serve until stopped; return the reason if a program ends by itself."""
    clocks = {"monotonic_ns": time.monotonic_ns(), "realtime_ns": time.time_ns()}
    over, ready, groups, received_signal = time.monotonic() + most_s, False, dict[str, str](), int(signal.SIGHUP)
    while received_signal not in (signal.SIGTERM, signal.SIGINT) and time.monotonic() < over:
        if gone := next((name for name, server in servers.items() if server.poll() is not None), None):
            lines = (directory / f"{gone}.log").read_text(errors="replace").strip().splitlines()
            return f"{gone} ended: {lines[-1] if lines else 'it printed nothing'}"
        if received_signal == signal.SIGHUP:
            groups = add_groups(directory, groups)
            document = {"address": address, "groups": groups, "clocks": clocks}
            (directory / "server.json").write_text(json.dumps(document))
        if not ready and scraped(address):
            (directory / "ready").touch()
            ready = True
        received = signal.sigtimedwait(SIGNALS, max(0.0, over - time.monotonic()) if ready else POLL_S)
        received_signal = 0 if received is None else received.si_signo
    return None


def main() -> int:
    """Start both programs, serve, end both, and remove what Prometheus stored."""
    directory, interval_s, most_s = Path(sys.argv[1]), float(sys.argv[4]), float(sys.argv[5])
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    shown, answering = free_ports(2)
    servers: dict[str, subprocess.Popen[bytes]] = {}
    try:
        servers["cadvisor"] = start(directory, "cadvisor", cadvisor(sys.argv[2], shown, interval_s))
        argv = prometheus(sys.argv[3], directory, answering, shown, interval_s)
        servers["prometheus"] = start(directory, "prometheus", argv)
        why = serve(directory, servers, f"http://127.0.0.1:{answering}", most_s)
    finally:
        end(servers)
        shutil.rmtree(directory / "tsdb", ignore_errors=True)
    if why is not None:
        sys.stderr.write(f"{why}\n")
    return 0 if why is None else 1


if __name__ == "__main__":
    sys.exit(main())
