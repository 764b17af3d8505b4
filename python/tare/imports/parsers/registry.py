"""Every parser by the name that a mapping file calls it."""

from __future__ import annotations

from collections.abc import Mapping

from tare.imports.parsers import Parser
from tare.imports.parsers.benchbase import Benchbase
from tare.imports.parsers.cassandra_stress import CassandraStress
from tare.imports.parsers.fio import Fio
from tare.imports.parsers.hammerdb import HammerDb
from tare.imports.parsers.memtier import Memtier
from tare.imports.parsers.pgbench import Pgbench
from tare.imports.parsers.redis_benchmark import RedisBenchmark
from tare.imports.parsers.sysbench import Sysbench
from tare.imports.parsers.ycsb import Ycsb

PARSERS: Mapping[str, Parser] = {
    "ycsb": Ycsb(),
    "sysbench": Sysbench(),
    "cassandra-stress": CassandraStress(),
    "pgbench": Pgbench(),
    "redis-benchmark": RedisBenchmark(),
    "memtier": Memtier(),
    "fio": Fio(),
    "hammerdb": HammerDb(),
    "benchbase": Benchbase(),
}
"""Name → parser. The first that recognises a text reads it, when the mapping is not there yet."""
