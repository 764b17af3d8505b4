"""`python -m tools.fuzz --cases 100000 [--seed N] [--jobs N] [--target NAME]...`: read damaged inputs.

A finding is an exception that is no `TareError`, an input that cannot be meant and is taken in silence, more than
5 seconds of CPU time, or 512 MB more memory than at the start. Each is printed with the options that make it again;
the counts go to stdout as JSON. Ends with 1 where there was any. Each target gets the same time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from types import FrameType

from tare.errors import TareError, is_panic
from tools.fuzz.documents import Accepted
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
        except Accepted as error:
            return f"accepted: {error}"
        except Hung:
            return f"more than {HANG_S} s: {traceback.format_exc().splitlines()[-3].strip()}"
        except MemoryError:
            return f"more than {MEMORY_BYTES >> 20} MB"
        except BaseException as error:
            if not isinstance(error, Exception) and not is_panic(error):
                raise
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


def main(words: Sequence[str] | None = None) -> int:
    """Fuzz; the counts go to stdout, findings to stderr."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, help="End after so long (10 where no --cases are given).")
    parser.add_argument("--cases", type=int, help="End after so many cases.")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS))
    parser.add_argument("--jobs", type=int, default=1, help="So many processes, each with its share of the cases.")
    parser.add_argument("--progress", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.minutes is None:
        options.minutes = 10.0 if options.cases is None else float("inf")
    sys.stderr.write(f"seed {options.seed}\n")
    result = _many(options) if options.jobs > 1 else _one(options)
    print(json.dumps(result, indent=1))
    return 1 if result["findings"] else 0


def _one(options: argparse.Namespace) -> dict[str, object]:
    cases, faults, shown = Counter[str](), Counter[str](), set[str]()
    spent = dict.fromkeys(options.target or sorted(TARGETS), 0.0)
    limit_memory()
    until = time.monotonic() + 60 * options.minutes
    for seed in _seeds(options, cases, until):
        name = min(spent, key=lambda each: spent[each])
        if options.progress is not None:
            options.progress.write_text(f"{json.dumps(cases)}\n--target {name} --seed {seed} --cases 1")
        began = time.process_time()
        wrong = finding(TARGETS[name], seed)
        spent[name] += time.process_time() - began
        cases[name] += 1
        if wrong is not None:
            faults[name] += 1
            place = f"{name} {wrong.rpartition(' at ')[2]}"
            if place not in shown:
                shown.add(place)
                sys.stderr.write(f"--target {name} --seed {seed} --cases 1: {wrong}\n")
                sys.stderr.flush()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return {"total": cases.total(), "cases": cases, "findings": faults, "peak_mib": peak}


def _seeds(options: argparse.Namespace, cases: Counter[str], until: float) -> Iterator[int]:
    seed = options.seed
    while time.monotonic() < until and (options.cases is None or cases.total() < options.cases):
        yield seed
        seed += 1


def _many(options: argparse.Namespace) -> dict[str, object]:
    """Each process has seeds of its own; one that a signal ended is a finding."""
    common = [word for name in options.target or () for word in ("--target", name)]
    if options.minutes != float("inf"):
        common += ["--minutes", str(options.minutes)]
    if options.cases is not None:
        common += ["--cases", str(-(-options.cases // options.jobs))]
    cases, faults, peak = Counter[str](), Counter[str](), 0
    with tempfile.TemporaryDirectory(prefix="tare-fuzz-jobs-") as place:
        jobs = []
        for number in range(options.jobs):
            own = ["--seed", str(options.seed + (number << 32)), "--progress", f"{place}/{number}"]
            argv = [sys.executable, "-m", "tools.fuzz", *common, *own]
            jobs.append(subprocess.Popen(argv, stdout=subprocess.PIPE, text=True))
        for number, job in enumerate(jobs):
            printed, _ = job.communicate()
            if job.returncode not in (0, 1) or not printed:
                before, _, last = Path(f"{place}/{number}").read_text().partition("\n")
                sys.stderr.write(f"{last}: ended with {job.returncode}\n")
                cases.update(json.loads(before))
                faults["died"] += 1
                continue
            result = json.loads(printed)
            cases.update(result["cases"])
            faults.update(result["findings"])
            peak = max(peak, result["peak_mib"])
    return {"total": cases.total(), "cases": cases, "findings": faults, "peak_mib": peak}


if __name__ == "__main__":
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    sys.exit(main())
