"""Who asks which database of its own work."""

from __future__ import annotations

from collections.abc import Mapping

from tare.databases.cassandra_chronicle import CassandraChronicler
from tare.databases.chronicle import Chronicler

CHRONICLERS: Mapping[str, Chronicler] = {"cassandra": CassandraChronicler(), "cassandra-5": CassandraChronicler()}
"""Database → who asks it; one that is not here has nothing to tell."""
