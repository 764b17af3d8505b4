"""Started by nice or chrt, tare takes the default priority for its runs, and gives it to bare tasks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.unit.deployments.test_observe import HYBRID

from tare.deployments.cgroup.hierarchy import parse_cgroups
from tare.deployments.observe import observe
from tare.sites.fake import FakeHost

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="raising a priority takes root")
FIRST = """
import os
from tare.deployments.bare.launcher import take_default_priority
from tare.cli.priority import default_priority

def show():
    print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0), flush=True)
"""
LOWER = "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)); os.setpriority(os.PRIO_PROCESS, 0, 7)\n"
"""After the imports, which would take minutes on a busy machine."""
DURING = "with default_priority({}):\n    show()\nshow()\n"
ROOTS = "take_default_priority()\n"
"""The suite itself may run under nice."""
OTHER, IDLE = f"{os.SCHED_OTHER} 0", f"{os.SCHED_IDLE} 7"


def ran(script: str) -> tuple[list[str], str]:
    """Lines that a script prints, and what it says on standard error."""
    argv = [sys.executable, "-c", FIRST + ROOTS + script]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines(), done.stderr


@AS_ROOT
def test_runs_have_the_default_priority_and_the_former_one_comes_back() -> None:
    printed = "tare: SCHED_IDLE and niceness 7 is set to the default priority until the runs end\n"
    assert ran(LOWER + DURING.format("")) == ([OTHER, IDLE], printed)
    assert ran(LOWER + DURING.format("quiet=True")) == ([OTHER, IDLE], "")
    assert ran(DURING.format("")) == ([OTHER, OTHER], "")


@AS_ROOT
def test_a_user_who_may_not_raise_it_is_warned() -> None:
    lines, printed = ran(LOWER + "os.setuid(65534)\n" + DURING.format("quiet=True"))
    assert lines == [IDLE, IDLE]
    assert printed.startswith(
        "tare: warning: tare runs with SCHED_IDLE and niceness 7, which only root may change: "
    )


@AS_ROOT
def test_a_bare_task_gets_the_priority_that_containers_have() -> None:
    assert ran(LOWER + "take_default_priority()\nshow()\n") == ([OTHER], "")


def test_a_niceness_that_is_in_force_is_part_of_the_scheduler_that_arms_are_compared_by() -> None:
    host = FakeHost()
    process = host.spawn()
    stat = f"/proc/{process.pid}/stat"
    fields = host.files[stat].split()
    fields[18], fields[40] = b"15", b"3"
    host.files[stat] = b" ".join(fields)
    assert observe(host, parse_cgroups(HYBRID), process.pid, []).scheduler == "batch, nice 15"
