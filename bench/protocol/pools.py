"""The studies that `make bench-protocol` makes: two identical servers and one known effect, under four protocols.

The effect is 105 queries a transaction instead of 100. `fixed` and `buckets` share their runs, as they differ in
the analysis alone. tare-load drives all, as only it can take turns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tare.calibrate.kinds import Contrast, Injection, Kind, transactions_per_cpu_second
from tare.plan.expand import CONTROL
from tare.study.model import Study
from tare.study.reading.load import loads
from tare.study.registry import installed

BASELINE, INJECTED = "k100", "k105"
BLOCKS = 8
MEASURE_S = 7.0
"""A duet drops two of its windows; the others measure as long, so that all have the same parity."""
TITLE = "work +5 %"


def interleave(number: int) -> Study:
    """Every arm once a block, in mirrored random order, each run restarted."""
    return _study(number, "interleave", name="interleave", target=None)


def rotate(number: int) -> Study:
    """All servers at once, driven one at a time in long turns: a transaction of 100 queries takes over 10 ms."""
    return _study(number, "rotate", name="rotate", target=None, turn_ms=160, settle_ms=40)


def together(number: int) -> Study:
    """All runs of an arm, then the next arm."""
    return _study(number, "together", name="fixed", sequence="together")


def duet(number: int) -> Study:
    """The baseline and one other arm at once, SUT and client on one CPU, swapped half-way."""
    return _study(number, "duet", name="duet", target=None)


_CONTRASTS = (
    Contrast(CONTROL, BASELINE),
    Contrast(INJECTED, BASELINE, Injection(TITLE, transactions_per_cpu_second)),
)
POOLS: Mapping[str, Kind] = {
    "interleave": Kind("interleave", interleave, _CONTRASTS),
    "rotate": Kind("rotate", rotate, _CONTRASTS),
    "together": Kind("fixed blocks", together, _CONTRASTS),
    "duet": Kind("duet", duet, _CONTRASTS),
}
"""In the order in which they take turns."""


def _study(number: int, title: str, **protocol: Any) -> Study:
    pinned = protocol["name"] not in {"duet", "rotate"}  # these place both sides themselves
    limits = {side: {"cpus": cpu} if pinned else {} for side, cpu in (("sut", "0"), ("client", "1"))}
    tree = {
        "format": 1,
        "name": f"bench-{title}",
        "question": "What does a protocol cost, and how often is it wrong?",
        "sut": {
            "image": "mariadb",
            "database": "mariadb",
            "deployment": "bare" if number % 2 else "container",
            "network": "host",
            "limits": {**limits["sut"], "memory": "1G"},
            "settings": {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "8M"},
        },
        "client": {"image": "tare-load", "deployment": "bare", "network": "host", "limits": limits["client"]},
        "workload": {
            "name": "tare-load",
            "connections": 4,
            "sysbench": {
                "script": "oltp_read_only",
                "tables": 1,
                "table_size": 10_000,
                "point_selects": 100,
                "range_selects": False,
                "skip_trx": True,
            },
            "warmup_s": 0.5,
            "measure_s": MEASURE_S,
            "window_s": 1,
        },
        "protocol": {"blocks": BLOCKS, "retries": 1, "seed": number, **protocol},
        "factors": {
            "queries": {"sets": "workload.sysbench.point_selects", "levels": {BASELINE: 100, INJECTED: 105}}
        },
        "baseline": BASELINE,
    }
    return loads(json.dumps(tree), installed(), file=f"bench-{title}.yaml")
