"""The study that would measure a trap here: the trap's own levels, around the database that was looked at."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from ruamel.yaml import YAML

from tare.errors import StudyError
from tare.traps.trap import TrapFile

_YCSB: Mapping[str, Any] = {
    "name": "ycsb", "core_workload": "a", "records": 100_000, "threads": 8, "warmup_s": 10, "measure_s": 60
}  # fmt: skip
_SYSBENCH: Mapping[str, Any] = {
    "name": "sysbench", "script": "oltp_read_only", "tables": 4, "table_size": 100_000, "threads": 8,
    "warmup_s": 10, "measure_s": 60,
}  # fmt: skip
_SERVED: Mapping[str, tuple[str, str, Mapping[str, Any], Mapping[str, Any]]] = {
    "postgresql": ("postgresql-15", "sysbench", {"shared_buffers": "256MB"}, _SYSBENCH),
    "mariadb": ("mariadb", "sysbench", {"innodb_buffer_pool_size": "256M"}, _SYSBENCH),
    "mysql": ("mysql", "sysbench", {"innodb_buffer_pool_size": "256M"}, _SYSBENCH),
    "redis": ("redis-7", "ycsb", {}, _YCSB),
    "valkey": ("valkey-8", "ycsb", {}, _YCSB),
    "cassandra": ("cassandra-3.11", "ycsb", {"heap": "512M"}, _YCSB),
}
"""Database → recipe, client's recipe, settings, workload."""


def study_of(known: TrapFile, database: str) -> str:
    """A study file as text. Raises `StudyError` if tare cannot vary the trap or has no image of the database."""
    if not known.trap.study:
        raise StudyError(f"no study can vary {known.id!r} yet", hint="choose another of the traps with --trap")
    if database not in _SERVED:
        raise StudyError(
            f"tare has no image and workload for {database!r}", hint=f"it has them for {', '.join(_SERVED)}"
        )
    image, client, settings, workload = _SERVED[database]
    levels = {name: dict(level) for name, level in known.trap.study.items()}
    sut = {"image": image, "database": database, "deployment": "container", "network": "host",
           "limits": {"cpus": "0"}}  # fmt: skip
    tree = {
        "format": 1,
        "name": known.id,
        "question": f"What does this cost here: {known.trap.title[0].lower()}{known.trap.title[1:]}?",
        "sut": {**sut, "settings": dict(settings)} if settings else sut,
        "client": {"image": client, "deployment": "bare", "network": "host", "limits": {"cpus": "1"}},
        "workload": dict(workload),
        "protocol": {
            "name": "interleave",
            "target": 0.02,
            "blocks": 24,
            "max_minutes": 240,
            "retries": 1,
            "seed": 1,
        },
        "factors": {
            "level": {"sets": sorted({key for level in levels.values() for key in level}), "levels": levels}
        },
        "baseline": list(levels)[-1],
    }
    text = io.StringIO()
    writer = YAML()
    writer.width = 110
    writer.dump(tree, text)
    return f"# {known.trap.title}: {known.trap.sources[0].url}\n{text.getvalue()}"
