"""Parser for tare-load's interval logs: one histogram for each kind of operation.

Format 1.3 of HdrHistogram's logs: a line for each window and kind, in nanoseconds with three significant digits.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import numpy as np
from hdrh.codec import HdrCookieException, HdrLengthException
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from tare.errors import RunFailed

LATENCY, SERVICE = "latency.hlog", "service.hlog"
LOGS = (LATENCY, SERVICE, "parts.hlog", "warm-up.hlog")
"""Names of the logs in the client's run directory."""
RESOLUTION = 1e-3
"""Resolution of three significant digits: a bucket is no wider than 1 in 1024 of its value."""
_LONGEST_NS, _DIGITS = 3600 * 10**9, 3
_NS_PER_MS = 1e6
_BROKEN = (ValueError, zlib.error, HdrCookieException, HdrLengthException, IndexError)

Buckets = tuple[tuple[float, int], ...]
"""(largest value of a bucket in ms, count), ascending."""


def read_log(path: Path) -> Mapping[str, Buckets]:
    """Parse kind of operation → buckets of all its windows. Raises `RunFailed` if the log is missing or damaged."""
    counts: dict[str, dict[int, int]] = {}
    scale = HdrHistogram(1, _LONGEST_NS, _DIGITS)
    try:
        if not path.read_bytes():
            return {}  # no operation succeeded, so none was timed
        with closing(HistogramLogReader(str(path), scale)) as log:
            while (window := log.get_next_interval_histogram()) is not None:
                if (window.unit_magnitude, window.significant_figures) != (0, _DIGITS):
                    raise ValueError(f"nanoseconds with {_DIGITS} digits were expected")
                kind = counts.setdefault(str(window.get_tag()), {})
                for index in np.flatnonzero(np.ctypeslib.as_array(window.counts)):
                    kind[int(index)] = kind.get(int(index), 0) + int(window.counts[index])
    except FileNotFoundError as error:
        raise RunFailed(f"tare-load left no {path.name}") from error
    except _BROKEN as error:
        raise RunFailed(f"{path.name} of tare-load is damaged: {error}") from error
    return {
        tag: tuple((_highest_ms(scale, index), kind[index]) for index in sorted(kind))
        for tag, kind in counts.items()
    }


def _highest_ms(scale: HdrHistogram, index: int) -> float:
    return float(scale.get_highest_equivalent_value(scale.get_value_from_index(index))) / _NS_PER_MS
