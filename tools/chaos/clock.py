"""A wall clock that can be stepped, of tare and of those of its programs that ask the C library.

No kernel lets one process have another CLOCK_REALTIME: time_namespaces(7) has monotonic clocks alone.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

FILE = "TARE_CHAOS_CLOCK"
"""In the environment: the file with the seconds that the clock is ahead, eight bytes."""
_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long ahead(void) {
    static const volatile long long *shared;
    if (!shared) {
        const char *path = getenv("TARE_CHAOS_CLOCK");
        int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (file < 0) return 0;
        void *seen = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
        close(file);
        if (seen == MAP_FAILED) return 0;
        shared = seen;
    }
    return *shared;
}
int clock_gettime(clockid_t id, struct timespec *at) {
    int wrong = syscall(SYS_clock_gettime, id, at);
    if (!wrong && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += ahead();
    return wrong;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    int wrong = syscall(SYS_gettimeofday, at, zone);
    if (!wrong && at) at->tv_sec += ahead();
    return wrong;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


def steppable(place: Path) -> Mapping[str, str]:
    """The environment of programs that see it, right at first; empty where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return {}
    library, file = place / "clock.so", place / "clock"
    step(file, 0)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), "-x", "c", "-"],
        input=_SOURCE, text=True, check=True, timeout=60, capture_output=True,
    )  # fmt: skip
    return {"LD_PRELOAD": str(library), FILE: str(file)}


def step(file: Path, seconds: int) -> None:
    """How far it is ahead from now on, in the very file that programs have mapped."""
    with file.open("rb+" if file.exists() else "wb") as handle:
        handle.write(struct.pack("q", seconds))
