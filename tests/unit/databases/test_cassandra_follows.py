"""A table's properties follow what a workload was told of them, so that they may be a factor."""

from __future__ import annotations

import pytest
from tests.unit.analyze import synthetic

from tare.databases.cassandra.cassandra import Cassandra
from tare.run.parity.properties import variables


@pytest.mark.parametrize(
    ("key", "table"),
    [
        ("workload.compaction", "standard1"),
        ("workload.compaction", "counter1"),
        ("workload.properties.cassandra.tableoptions", "usertable"),
    ],
)
def test_compaction_may_differ_where_it_is_the_factor(key: str, table: str) -> None:
    name = f"table.tare.{table}.compaction"
    record = synthetic.record(1, "bare", 1900.0).model_copy(update={"effective": {name: "LCS"}})
    (reading,) = variables(record, Cassandra().per_run, Cassandra().derived_settings)
    assert reading.name == f"variable {name}"
    assert key in reading.keys
