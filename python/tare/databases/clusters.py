"""Which databases can be a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from tare.databases.cassandra_cluster import CassandraCluster
from tare.databases.cluster import Cluster
from tare.databases.fake_cluster import FakeCluster

CLUSTERS: Mapping[str, Cluster] = {"cassandra": CassandraCluster(), "fake": FakeCluster()}
"""Database → how its nodes are asked; one that is not here is one server."""
