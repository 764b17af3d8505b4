"""Threads that tare starts by loading its libraries."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COUNTED = """
import os
from tare import __main__, cli

def count() -> None:
    import numpy
    print(numpy.__name__, len(os.listdir("/proc/self/task")))

cli.main = count
__main__.main()
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) == 1, reason="with one CPU OpenBLAS starts no thread anyway")
def test_linear_algebra_starts_no_thread_whose_refusal_would_look_like_ctrl_c() -> None:
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    argv = [sys.executable, "-c", COUNTED]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "numpy 1\n", done.stderr
