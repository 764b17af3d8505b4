"""`python -m tools.fuzz --minutes 10 [--seed N] [--target NAME]...`: read damaged inputs until the time is over.

A finding is an exception that is no `TareError`, more than 5 seconds of CPU time, or 512 MB more memory than at the
start. Each is printed with the options that make it again. Ends with 1 where there was any.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from types import FrameType

from tare.errors import TareError
from tools.fuzz.targets import TARGETS, Case

HANG_S = 5
"""Of CPU time, whatever else the machine does."""
WAIT_S = 60
"""By the clock, for what waits."""
MEMORY_BYTES = 512 << 20


class Hung(BaseException):
    """A case took too long; no handler of tare's may take it for an error of its own."""


def _hung(_number: int, _frame: FrameType | None) -> None:
    raise Hung


def finding(case: Case, seed: int) -> str | None:
    """What is wrong with how tare reads the input that `seed` makes; `None` where nothing is."""
    with tempfile.TemporaryDirectory(prefix="tare-fuzz-") as place:
        for number in (signal.SIGALRM, signal.SIGPROF):
            signal.signal(number, _hung)
        signal.setitimer(signal.ITIMER_PROF, HANG_S)
        signal.alarm(WAIT_S)
        try:
            case(Random(seed), Path(place))
        except TareError:
            pass
        except Hung:
            return f"more than {HANG_S} s: {traceback.format_exc().splitlines()[-3].strip()}"
        except MemoryError:
            return f"more than {MEMORY_BYTES >> 20} MB"
        except Exception as error:  # noqa: BLE001 - the finding itself
            frames = traceback.extract_tb(error.__traceback__)
            ours = next((each for each in reversed(frames) if "/tare/" in each.filename), frames[-1])
            return f"{type(error).__name__}: {str(error)[:120]!r} at {Path(ours.filename).name}:{ours.lineno}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
    return None


def limit_memory() -> None:
    """Give this process 512 MB of data beside what it has now."""
    now = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (now + MEMORY_BYTES, resource.RLIM_INFINITY))


def main() -> int:
    """Fuzz; the counts go to stdout as JSON, findings to stderr."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--cases", type=int, help="End after so many cases, before the time is over.")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS))
    options = parser.parse_args()
    sys.stderr.write(f"seed {options.seed}\n")
    names = options.target or sorted(TARGETS)
    cases, faults, shown = Counter[str](), Counter[str](), set[str]()
    limit_memory()
    until, seed = time.monotonic() + 60 * options.minutes, options.seed
    while time.monotonic() < until and (options.cases is None or cases.total() < options.cases):
        name = names[seed % len(names)]
        wrong = finding(TARGETS[name], seed)
        cases[name] += 1
        if wrong is not None:
            faults[name] += 1
            place = wrong.rpartition(" at ")[2]
            if place not in shown:
                shown.add(place)
                sys.stderr.write(f"--target {name} --seed {seed} --cases 1: {wrong}\n")
        seed += 1
    print(json.dumps({"cases": cases, "findings": faults, "total": cases.total()}, indent=1))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
