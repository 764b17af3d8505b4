"""The studies of `make truth`: two instances of the same, and effects of known size, under every protocol.

A kind is a protocol, a database and a network path; its studies take turns with those of all others. Effects are
put in as `tare calibrate` does it, and their true sizes read by the same readings:

- work: 21 queries an operation where the baseline has 20; transactions per CPU second.
- quota: the kernel gives the server 90 % of a CPU; CPU seconds per second.

Both take a server that has no CPU time left, so the path through docker-proxy, which has a CPU of its own, and the
sustainable rate, at which a server is not at its end, have A/A comparisons only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from tare.calibrate.kinds import Contrast, Injection, Kind, cpu_seconds_per_second, transactions_per_cpu_second
from tare.plan.expand import CONTROL
from tare.study.model import Study
from tare.study.reading.load import loads
from tare.study.registry import installed

SAME, WORK, QUOTA = "same", "more-work", "quota"
"""Arms: the baseline, and those that something is put into."""
_LEFT_OUT = "left-out"
QUERIES, MORE_QUERIES = 20, 21
SHARE = 0.9
_WINDOWS = 7
_WINDOW_S, _DUET_WINDOW_S = 0.3, 1.0
"""A duet's servers are looked at before they change CPUs half-way: a busy machine needs seconds for that."""

PROTOCOLS: Mapping[str, Mapping[str, Any]] = {
    "interleave": {"name": "interleave", "target": 0.05, "blocks": 16},
    "t-mixture": {"name": "interleave", "target": 0.05, "blocks": 24, "looks": "any"},
    "sign-flip": {"name": "interleave", "target": 0.05, "blocks": 32, "looks": "any", "anytime": "sign-flip"},
    "rotate": {"name": "rotate", "target": 0.03, "blocks": 16, "turn_ms": 400, "settle_ms": 100},
    "duet": {"name": "duet", "target": 0.05, "blocks": 16},
    "paired": {"name": "fixed", "blocks": 8, "paired": True},
    "fixed": {"name": "fixed", "blocks": 5},
    "rate": {"name": "interleave", "target": 0.10, "blocks": 12},
    "sites": {"name": "interleave", "target": None, "blocks": 12},
}
"""As a user would ask for them, except that a quota needs turns of whole periods.

`fixed` is judged as publications do (Welch), and not counted among tare's own."""
AS_PUBLISHED = frozenset({"fixed"})
ON_SITES = "sites"
"""The protocol that needs several sites."""

PATHS: Mapping[str, Mapping[str, str]] = {
    "bare": {"deployment": "bare", "network": "host"},
    "host": {"deployment": "container", "network": "host"},
    "bridge": {"deployment": "container", "network": "bridge"},
    "published-loopback": {"deployment": "container", "network": "published-loopback"},
}
_PROXIED = "published-loopback"


@dataclass(frozen=True)
class Database:
    """`work`: what a client asks for in an operation of so many queries. `climb`: rates of a sustainable one."""

    sut: Mapping[str, Any]
    connections: int
    climb: tuple[int, int]
    sql: bool

    def work(self, queries: int) -> Mapping[str, Any]:
        """Keys of the workload."""
        if self.sql:
            script = {"script": "oltp_read_only", "tables": 1, "table_size": 10_000, "range_selects": False}
            return {"sysbench": {**script, "skip_trx": True, "point_selects": queries}}
        steps = [{"send": "GET key:{key}", "expect": {"bytes": 100}}] * queries
        load = {"records": 10_000, "steps": [{"send": "SET key:{record} {value}"}]}
        return {
            "job": {
                "generators": {"key": {"uniform": {"from": 0, "to": 9_999}}, "value": {"text": {"length": 100}}},
                "operations": [{"name": "get", "steps": steps}],
                "load": load,
            }
        }


DATABASES: Mapping[str, Database] = {
    "redis": Database(
        {"image": "redis-7", "database": "redis", "settings": {"save": "", "appendonly": False}},
        16,
        (200, 8_000),
        sql=False,
    ),
    "mariadb": Database(
        {
            "image": "mariadb",
            "database": "mariadb",
            "settings": {"innodb_buffer_pool_size": "64M", "innodb_log_file_size": "8M"},
        },
        8,
        (200, 3_000),
        sql=True,
    ),
    "postgresql": Database({"image": "postgresql-15", "database": "postgresql"}, 8, (200, 3_000), sql=True),
}


@dataclass(frozen=True)
class Cell:
    """What a kind of studies is of."""

    protocol: str
    database: str
    path: str

    @property
    def name(self) -> str:
        """As the archive calls it."""
        return f"{self.protocol}-{self.database}-{self.path}"

    @property
    def injected(self) -> bool:
        """Whether effects are put in."""
        return self.protocol != "rate" and self.path != _PROXIED


def study(cell: Cell, number: int) -> Study:
    """The study of a number, which is its seed."""
    database, queries = DATABASES[cell.database], QUERIES
    levels: dict[str, Any] = {SAME: {}}
    if cell.injected:
        work = database.work(MORE_QUERIES)
        levels[WORK] = {f"workload.{key}": value for key, value in work.items()}
        levels[QUOTA] = {"sut.limits.cpu_quota": SHARE}
    if not cell.injected:
        levels[_LEFT_OUT] = {"workload.connections": 1}  # a study file has two arms at the least
    sets = list(dict.fromkeys(key for level in levels.values() for key in level))
    pinned = cell.protocol not in {"duet", "rotate"}  # these place both sides themselves
    tree = {
        "format": 1,
        "name": f"truth-{cell.name}",
        "question": "Does tare tell the truth where the truth is known?",
        "sut": {
            **database.sut,
            **PATHS[cell.path],
            "limits": {"memory": "1G", **({"cpus": "0"} if pinned else {})},
        },
        "client": {
            "image": "tare-load",
            "deployment": "bare",
            "network": "host",
            **({"limits": {"cpus": "1"}} if pinned else {}),
        },
        "workload": {
            "name": "tare-load",
            "connections": database.connections,
            **_phases(cell),
            **database.work(queries),
        },
        "protocol": {**PROTOCOLS[cell.protocol], "retries": 1, "seed": number},
        "factors": {"effect": {"sets": sets, "levels": levels}},
        "baseline": SAME,
    }
    made = loads(json.dumps(tree, indent=1), installed(), file=f"truth-{cell.name}.yaml")
    return made.model_copy(update={"arms": tuple(arm for arm in made.arms if arm.name != _LEFT_OUT)})


def _phases(cell: Cell) -> Mapping[str, Any]:
    if cell.protocol != "rate":
        window_s = _DUET_WINDOW_S if cell.protocol == "duet" else _WINDOW_S
        return {"measure_s": _WINDOWS * window_s, "window_s": window_s}
    low, high = DATABASES[cell.database].climb
    bound = {"quantile": "p95", "within_ms": 10.0, "from_per_s": low, "to_per_s": high, "rungs": 12}
    return {"measure_s": 12.0, "window_s": 1.0, "warmup_s": 1.0, "sustainable": bound}


def _contrasts(cell: Cell) -> Iterator[Contrast]:
    yield Contrast(CONTROL, SAME)
    if cell.injected:
        yield Contrast(WORK, SAME, Injection("work +5 %", transactions_per_cpu_second))
        yield Contrast(QUOTA, SAME, Injection("CPU quota 90 %", cpu_seconds_per_second))


CELLS: Mapping[str, Cell] = {
    cell.name: cell for cell in (Cell(*each) for each in product(PROTOCOLS, DATABASES, PATHS))
}
"""Every protocol with every database over every path."""
KINDS: Mapping[str, Kind] = {
    name: Kind(name, partial(study, cell), tuple(_contrasts(cell))) for name, cell in CELLS.items()
}
