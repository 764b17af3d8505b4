"""Every place that a new database has: a page, a link to it, and a workload that drives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.databases.registry import BUILT_IN
from tare.workloads.cassandra_stress.cassandra_stress import DRIVEN
from tare.workloads.sysbench.sysbench import DRIVERS
from tare.workloads.tare_load.work import PROTOCOLS
from tare.workloads.ycsb.bindings import BINDING_OF

DOCS = Path(__file__).parents[3] / "docs"
REAL = sorted(set(BUILT_IN) - {"fake"})
PAGE = {"cassandra-5": "cassandra", "valkey": "redis"}
"""Databases that share the page of another."""


@pytest.mark.parametrize("name", REAL)
def test_every_database_has_a_page_that_the_index_links(name: str) -> None:
    page = f"reference/databases/{PAGE.get(name, name)}.md"
    assert (DOCS / page).is_file(), f"write docs/{page}"
    assert page in (DOCS / "index.md").read_text(encoding="utf-8"), f"link {page} in docs/index.md"


@pytest.mark.parametrize("name", REAL)
def test_every_database_is_driven_by_a_workload(name: str) -> None:
    assert name in {*DRIVERS, *PROTOCOLS, *BINDING_OF, *DRIVEN}, f"no workload drives {name}: no study can use it"
