"""What the machine of tare-load does not give it, told before anything is sent."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

from tests.integration.load.servers import LIMIT_S, job, operation


def test_too_few_files_for_the_connections(tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [operation("ask", "PING")])
    words = ["tare-load", "run", "--protocol", "redis", "--job", path, "--connections", "200"]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)),
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip() == (
        "tare-load: 200 connections need 264 file descriptors, but the limit is 100: raise it with "
        "`ulimit -n 264` or ask for fewer connections"
    )


def test_an_operation_of_a_trace_that_nobody_knows(tmp_path: Path) -> None:
    path = job(tmp_path / "job.yaml", [operation("ask", "PING")])
    trace = tmp_path / "trace.csv"
    trace.write_text("seconds,operation\n0,ask\n0.5,beg\n")
    words = ["tare-load", "run", "--protocol", "redis", "--job", path, "--trace", str(trace)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == f"tare-load: {trace}, line 3: `beg` is none of the operations: ask"
