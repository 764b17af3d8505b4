"""Every parser by the name that a mapping file calls it."""

from __future__ import annotations

from collections.abc import Mapping

from tare.imports.parsers import Parser
from tare.imports.parsers.cassandra_stress import CassandraStress
from tare.imports.parsers.sysbench import Sysbench
from tare.imports.parsers.ycsb import Ycsb

PARSERS: Mapping[str, Parser] = {
    "ycsb": Ycsb(),
    "sysbench": Sysbench(),
    "cassandra-stress": CassandraStress(),
}
"""Name → parser. The first that recognises a text reads it, when the mapping is not there yet."""
