"""CPU time of processes with their descendants, as JSON: `{"PID": NANOSECONDS, …}`, without those that are gone.

    python3 -I -S cpu_clock.py [PID | below:PID] …

`below:PID` leaves the process itself out. Living processes are read by their CPU clock (clock_gettime(2) of
MAKE_PROCESS_CPUCLOCK, include/linux/posix-timers_types.h), which is finer than ticks; the time of children that
have ended and were waited for is known in ticks of 10 ms.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path

SCHED = 2
CHILD_USER, CHILD_SYSTEM, PARENT = 13, 14, 1


def stat(pid: int) -> list[bytes] | None:
    """Fields of /proc/PID/stat behind the command's bracket, proc_pid_stat(5)."""
    try:
        raw = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    return raw[raw.rindex(b")") + 2 :].split()


def used_ns(pid: int, fields: list[bytes]) -> int:
    """CPU time of one process, including children that have ended."""
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    children_ns = (int(fields[CHILD_USER]) + int(fields[CHILD_SYSTEM])) * tick_ns
    return time.clock_gettime_ns((~pid << 3) | SCHED) + children_ns


def main() -> None:
    """Read all processes once, and sum up the requested trees."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    alive = {pid: fields for pid in pids if (fields := stat(pid))}
    below: dict[int, list[int]] = {}
    for pid, fields in alive.items():
        below.setdefault(int(fields[PARENT]), []).append(pid)
    clocks: dict[str, int] = {}
    for word in sys.argv[1:]:
        without, _, asked = word.rpartition(":")
        root = int(asked)
        tree = [] if without or root not in alive else [root]
        rest = list(below.get(root, ()))
        while rest:
            tree.append(rest.pop())
            rest += below.get(tree[-1], ())
        for member in tree:
            with contextlib.suppress(OSError):
                clocks[asked] = clocks.get(asked, 0) + used_ns(member, alive[member])
    json.dump(clocks, sys.stdout)


if __name__ == "__main__":
    main()
