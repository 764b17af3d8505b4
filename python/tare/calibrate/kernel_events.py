"""The cost of single kernel events, each measured in two ways.

Sent to a host, or into a container, and run by its own Python: `kernel_events.py REPEATS EVENTS NAME=DIRECTORY...`
prints JSON: event → where → {"first": [ns, ...], "second": [ns, ...]}, one figure for each repeat. Events that
cannot be measured are left out, with the reason in "lacks". Repeats are interleaved, so that a disturbance affects
every event.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

_PAGE, _PAGES = 4096, 4096
_FILE_PAGES, _WRITTEN_PAGES = 4096, 64
_CALLS, _ALONE, _SYNCS = 50_000, 300, 30
_KEPT = 0.98
"""Share of the page faults that counts: the slowest were hit by interrupts."""
_ASLEEP_S = 0.0001
Ways = tuple[float, float]


def main(repeats: int, events: Sequence[str], places: Mapping[str, str]) -> None:
    """Measure every event `repeats` times and print the figures."""
    costs: dict[str, dict[str, dict[str, list[float]]]] = {}
    lacks: dict[tuple[str, str], str] = {}
    for _ in range(repeats):
        for event, where, measured in _tasks(events, places):
            if (event, where) in lacks:
                continue
            try:
                first, second = measured()
            except OSError as error:
                lacks[event, where] = error.strerror or str(error)
                continue
            ways = costs.setdefault(event, {}).setdefault(where, {"first": [], "second": []})
            ways["first"].append(first)
            ways["second"].append(second)
    reasons = [" ".join(filter(None, key)) + f": {why}" for key, why in lacks.items()]
    json.dump({"events": costs, "lacks": reasons}, sys.stdout)


def _tasks(events: Sequence[str], places: Mapping[str, str]) -> Iterator[tuple[str, str, Callable[[], Ways]]]:
    alone = {"syscall": _syscall, "fault": _fault, "wakeup": _wakeup}
    of_file = {"read": _read, "fsync": _fsync, "read-cpu": _read_cpu, "write-cpu": _write_cpu}
    for event in events:
        if event in alone:
            yield event, "", alone[event]
        for name, folder in places.items() if event in of_file else ():
            yield event, name, partial(of_file[event], folder)


def _syscall() -> Ways:
    """First: CPU time of a loop of getppid(2) minus that of a function without a system call.

    Second: lseek(2), each call timed by itself, medians.
    """
    cpu, clock, call, none = time.thread_time_ns, time.perf_counter_ns, os.getppid, gc.isenabled
    began = cpu()
    for _ in range(_CALLS):
        none()
    empty = cpu()
    for _ in range(_CALLS):
        call()
    first = ((cpu() - empty) - (empty - began)) / _CALLS
    fd = os.open("/dev/null", os.O_RDONLY)
    alone, without = [], []
    for _ in range(10 * _ALONE):
        at = clock()
        os.lseek(fd, 0, 0)
        between = clock()
        none()
        without.append(clock() - between)
        alone.append(between - at)
    os.close(fd)
    return first, statistics.median(alone) - statistics.median(without)


def _area() -> mmap.mmap:
    area = mmap.mmap(-1, _PAGES * _PAGE)
    area.madvise(mmap.MADV_NOHUGEPAGE)
    return area


def _fault() -> Ways:
    """First: CPU time of first touches minus that of second touches, divided by the kernel's count of faults.

    Second: each touch timed by itself in another area, mean of all but the slowest.
    """
    cpu, clock = time.thread_time_ns, time.perf_counter_ns
    area, fresh, ones = _area(), _area(), bytes(_PAGES)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    with memoryview(area) as view:
        began = cpu()
        view[::_PAGE] = ones
        touched = cpu()
        view[::_PAGE] = ones
        again = cpu()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    alone, without = [], []
    for at in range(0, _PAGES * _PAGE, _PAGE):
        start = clock()
        fresh[at] = 1
        between = clock()
        fresh[at] = 1
        without.append(clock() - between)
        alone.append(between - start)
    area.close()
    fresh.close()
    if faults < _PAGES // 2:
        raise OSError(0, "touched pages took no faults of their own")
    kept = sorted(alone)[: int(_KEPT * len(alone))]
    return ((touched - began) - (again - touched)) / faults, statistics.fmean(kept) - statistics.median(without)


def _wakeup() -> Ways:
    """One way between CPUs. First: half of a pipe round trip; second: by the clocks of both ends; medians.

    Both minus the time of the same write and read without a wake-up.
    """
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise OSError(0, "one CPU alone")
    there, back, own = os.pipe(), os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.sched_setaffinity(0, {cpus[1]})
            for _ in range(_ALONE):
                os.read(there[0], 8)
                os.write(back[1], time.monotonic_ns().to_bytes(8, "little"))
        finally:
            os._exit(0)
    os.sched_setaffinity(0, {cpus[0]})
    rounds, ways, alone = [], [], []
    for _ in range(_ALONE):
        time.sleep(_ASLEEP_S)  # long enough for the other end to sleep again
        at = time.monotonic_ns()
        os.write(there[1], b"x" * 8)
        woken = int.from_bytes(os.read(back[0], 8), "little")
        rounds.append((time.monotonic_ns() - at) / 2)
        ways.append(woken - at)
        at = time.monotonic_ns()
        os.write(own[1], b"x" * 8)
        os.read(own[0], 8)
        alone.append(time.monotonic_ns() - at)
    os.waitpid(child, 0)
    os.sched_setaffinity(0, set(cpus))
    for end in (*there, *back, *own):
        os.close(end)
    without = statistics.median(alone)
    return statistics.median(rounds) - without, statistics.median(ways) - without


def _file(folder: str, flags: int = 0) -> int:
    """Open a file without a name."""
    path = Path(folder, f"tare-kernel-events-{os.getpid()}")
    fd = os.open(path, os.O_CREAT | os.O_RDWR | flags, 0o600)
    path.unlink()
    return fd


def _read(folder: str, clock: Callable[[], int] = time.perf_counter_ns) -> Ways:
    """Read 4 KiB at random. First: past the page cache (O_DIRECT); second: through it, after dropping its pages."""
    fd = _file(folder)
    try:
        block = os.urandom(_PAGE) * 256
        for _ in range(_FILE_PAGES // 256):
            os.write(fd, block)
        os.fsync(fd)
        places = _places(_FILE_PAGES, _ALONE)
        direct = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_DIRECT)
        buffer = mmap.mmap(-1, _PAGE)
        first = _each(lambda at: os.preadv(direct, [buffer], at), places, clock)
        os.close(direct)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        return first, _each(lambda at: os.pread(fd, _PAGE, at), list(dict.fromkeys(places)), clock)
    finally:
        os.close(fd)


def _read_cpu(folder: str) -> Ways:
    """CPU time that the reading thread uses, in both ways."""
    return _read(folder, time.thread_time_ns)


def _fsync(folder: str) -> Ways:
    """Write 4 KiB in place. First: write, then fsync(2); second: a file opened with O_SYNC."""
    return _written(folder, os.fsync, os.O_SYNC, time.perf_counter_ns)


def _write_cpu(folder: str) -> Ways:
    """CPU time that the thread uses for a write of the disk. First: write, then fdatasync(2); second: O_DSYNC.

    Neither writes the file's metadata, so that each is one write of the disk, and can be counted by those.
    """
    return _written(folder, os.fdatasync, os.O_DSYNC, time.thread_time_ns)


def _written(folder: str, sync: Callable[[int], object], flag: int, clock: Callable[[], int]) -> Ways:
    """Times of a write in place with a call that syncs it, and of a write to a file that is opened with a flag."""
    block = os.urandom(_PAGE)
    places = _places(_WRITTEN_PAGES, _SYNCS)
    plain, synced = _file(folder), _file(folder, flag)

    def write_and_sync(at: int) -> None:
        os.pwrite(plain, block, at)
        sync(plain)

    try:
        for fd in (plain, synced):
            os.write(fd, block * _WRITTEN_PAGES)
            os.fsync(fd)
        return _each(write_and_sync, places, clock), _each(lambda at: os.pwrite(synced, block, at), places, clock)
    finally:
        os.close(plain)
        os.close(synced)


def _places(pages: int, count: int) -> list[int]:
    """Draw page offsets at random."""
    draw = random.Random(os.getpid())  # noqa: S311 - no secret
    return [draw.randrange(pages) * _PAGE for _ in range(count)]


def _each(call: Callable[[int], object], places: Sequence[int], clock: Callable[[], int]) -> float:
    """Return the median time of a call over offsets by a clock, in ns."""
    times = []
    for at in places:
        began = clock()
        call(at)
        times.append(clock() - began)
    return statistics.median(times)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2].split(","), dict(each.split("=", 1) for each in sys.argv[3:]))
