"""Storages on each kind of host."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.hosts.reached import Reached

from tare.sites import Host
from tare.sites.ledger import Ledger


@pytest.fixture(scope="session")
def host(reached: Reached) -> Host:
    return reached.host


@pytest.fixture
def ledger(reached: Reached, tmp_path: Path) -> Ledger:
    return reached.ledger(tmp_path)
