"""YCSB 0.12 to 0.17: one report a file, as a phase writes it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

from tare.errors import RunFailed
from tare.imports.parsers import Report
from tare.imports.parsers.figures import plausible
from tare.workloads.ycsb.measurement import Expected, measurement
from tare.workloads.ycsb.output import Printed, read_output

_SAYS = {
    "threads": re.compile(r"^Command line:.* -threads (\d+)", re.MULTILINE),
    "rate": re.compile(r"^Command line:.* -target (\d+)", re.MULTILINE),
    "binding": re.compile(r"^Command line:.* -db (\S+)", re.MULTILINE),
    "duration": re.compile(r"^Command line:.* -p maxexecutiontime=(\d+)", re.MULTILINE),
    "version": re.compile(r"^YCSB Client (\d[\d.]*)", re.MULTILINE),
}
_INTENDED = re.compile(r"^Command line:.* -p measurement\.interval=intended\b", re.MULTILINE)
_CLOSING_SHARE = 0.01
"""Share of RunTime that the slowest closing of a connection may take; the operations had so much less time."""


class Ycsb:
    """Reports of YCSB."""

    title: ClassVar[str] = "YCSB 0.12 to 0.17"
    says: ClassVar[tuple[str, ...]] = tuple(_SAYS)

    def recognises(self, text: str) -> bool:
        """Its summary, or the line of its client."""
        return (
            "[OVERALL], RunTime(ms)" in text or "[OVERALL], Throughput(ops/sec)" in text or "YCSB Client " in text
        )

    def reports(self, text: str, max_error_share: float) -> Iterator[Report]:
        """The one report of the file; two in one file are refused, as nothing tells where the second begins."""
        says = {name: match.group(1) for name, pattern in _SAYS.items() if (match := pattern.search(text))}
        printed = read_output(text)
        asked = Expected(
            max_error_share=max_error_share,
            target_per_s=float(says["rate"]) if int(says.get("rate", 0)) else None,
            interval="intended" if _INTENDED.search(text) else None,
            window_s=_window_s(printed),
        )
        try:
            measured = plausible(measurement(printed, asked))
        except RunFailed as error:
            yield Report(None, str(error), says, text=text)
            return
        closing = _closing_share(printed)
        if closing is not None:
            measured = replace(measured, details={**measured.details, "closing_share": closing})
        distorted = closing is not None and closing > _CLOSING_SHARE
        yield Report(measured, None, says, text=text, distortions=("closing-in-runtime",) if distorted else ())


def _window_s(printed: Printed) -> float | None:
    """Time between most status lines (`-s`); `None` for fewer than three."""
    ends = list(dict.fromkeys(status.end_s for status in printed.statuses))
    steps = Counter(later - earlier for earlier, later in pairwise(ends) if later > earlier)
    return float(steps.most_common(1)[0][0]) if len(ends) > 2 and steps else None


def _closing_share(printed: Printed) -> float | None:
    """Share of RunTime that the slowest closing of a connection took."""
    closing_us, runtime_ms = (
        printed.figure(*name) for name in (("CLEANUP", "MaxLatency(us)"), ("OVERALL", "RunTime(ms)"))
    )
    return closing_us / runtime_ms / 1000 if closing_us is not None and runtime_ms else None
