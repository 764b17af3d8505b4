"""Whole runs on kernels that show less: `tare explain` says what is lacking and still tells the rest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.hosts.test_degraded_kernels import NO_BTF, NO_SYMBOLS

from tare.sites.layout import default_layout

pytestmark = [pytest.mark.root, pytest.mark.slow]

HIDING = ("unshare", "--mount", "--propagation", "private", "sh", "-c")
NO_PERF = """
import ctypes, errno, os, struct, sys
LOAD, JUMP, RETURN, ERRNO, ALLOW = 0x20, 0x15, 0x06, 0x50000, 0x7FFF0000
CALLS = {"x86_64": 298, "aarch64": 241}
each = lambda code, yes, no, value: struct.pack("=HBBI", code, yes, no, value)
filter = each(LOAD, 0, 0, 0) + each(JUMP, 0, 1, CALLS[os.uname().machine])
filter += each(RETURN, 0, 0, ERRNO | errno.EPERM) + each(RETURN, 0, 0, ALLOW)
held = ctypes.create_string_buffer(filter, len(filter))
header = struct.pack("HxxxxxxP", len(filter) // 8, ctypes.addressof(held))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, header, 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""What a container's seccomp filter does to perf_event_open(2), and nothing else of it."""
STUDY = """
format: 1
name: degraded
question: What does pipelining save a server that does nothing?
sut: {image: echo, database: echo, deployment: bare, network: host, limits: {cpus: "0"}}
client: {image: tare-load, deployment: bare, network: host, limits: {cpus: "1"}}
workload:
  name: tare-load
  connections: 16
  job:
    operations: [{name: ask, steps: [{send: "GET 100", expect: {bytes: 100}}]}]
    load: {records: 1, steps: [{send: "SET {record} x"}]}
  warmup_s: 0.2
  measure_s: 3
  window_s: 0.5
protocol: {name: fixed, blocks: 1, retries: 0, seed: 1, control: false}
factors:
  way: {sets: [workload.pipeline], levels: {plain: {}, pipelined: {workload.pipeline: 8}}}
baseline: plain
"""


def tare(directory: Path, *words: str, before: tuple[str, ...] = ()) -> str:
    environment = {**os.environ, "TARE_HOME": str(default_layout().home), "COLUMNS": "100"}
    done = subprocess.run(
        [*before, sys.executable, "-m", "tare", *words],
        cwd=directory, env=environment, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def explained(directory: Path, *before: str) -> str:
    """What `explain` says of a run behind a program, and that its report is written."""
    (directory / "study.yaml").write_text(STUDY)
    for image in ("echo", "tare-load"):
        tare(directory, "images", "build", str(Path(__file__).resolve().parents[3] / "images" / f"{image}.yaml"))
    tare(directory, "run", "study.yaml", "--profile", "--quiet", "--store", "store", before=before)
    assert "degraded at scale full" in tare(directory, "report", "store")
    text = tare(directory, "explain", "store")
    assert "CPU per operation" in text
    assert "waiting: run queue" in text
    return text


def test_without_btf_all_is_told_but_block_requests(tmp_path: Path) -> None:
    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("this kernel has no BTF anyway")
    text = explained(tmp_path, *HIDING, f'{NO_BTF} && exec "$@"', "sh")
    assert "block requests were not counted (this kernel has no BTF at /sys/kernel/btf/vmlinux)" in text
    assert "TCP/IP" in text


def test_without_symbols_own_code_and_the_kernel_as_a_whole_are_told(tmp_path: Path) -> None:
    text = explained(tmp_path, *HIDING, f'{NO_SYMBOLS} && exec "$@"', "sh")
    assert "functions of the kernel have no names, so there are no components: /proc/kallsyms hides" in text
    assert "kernel (no names)" in text
    assert "TCP/IP" not in text


def test_where_a_filter_refuses_perf_events_cpu_time_by_side_is_told(tmp_path: Path) -> None:
    """As of a container's root, whom `perf_event_paranoid` alone would let."""
    text = explained(tmp_path, sys.executable, "-I", "-c", NO_PERF)
    assert "no stacks were sampled: stacks of all CPUs cannot be sampled: Operation not permitted" in text
    assert "CPU time by side, from the kernel's counters, and waiting are shown" in text
    assert re.search(r"by side (?:client|server) [0-9]", text), text
