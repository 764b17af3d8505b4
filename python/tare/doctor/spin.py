"""Measure how long a busy loop is kept waiting; sent to a host and run there by its own Python.

    python3 -I - SECONDS PAUSE_US

Prints JSON: `seconds` that the loop ran, `pauses` longer than PAUSE_US, `lost_s` in them, `longest_ms`. A loop that
only reads the clock takes well under a microsecond per turn, so a pause is time in which something else had the
CPU: another process, an interrupt, or another machine on the same hardware.
"""

from __future__ import annotations

import gc
import json
import sys
import time


def spin(seconds: float, pause_ns: int) -> dict[str, float]:
    """Read the clock until the time is up."""
    clock = time.perf_counter_ns
    pauses = lost = longest = 0
    began = last = clock()
    end = began + int(seconds * 1e9)
    while last < end:
        now = clock()
        gap = now - last
        last = now
        if gap > pause_ns:
            pauses += 1
            lost += gap
            longest = max(longest, gap)
    return {"seconds": (last - began) / 1e9, "pauses": pauses, "lost_s": lost / 1e9, "longest_ms": longest / 1e6}


if __name__ == "__main__":
    gc.disable()
    sys.stdout.write(json.dumps(spin(float(sys.argv[1]), int(float(sys.argv[2]) * 1000))))
