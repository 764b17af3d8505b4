"""The connections are the warm-up's where all of it were seen, else those of the client that measures."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.run.conftest import make_plan

from tare.record.network_path import Hop, NetworkPath
from tare.workloads.registry import WORKLOADS


@pytest.fixture
def counted(rig: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a study whose clients open 4 connections, of which so many are seen of each client's process in turn."""

    def run(*seen: int) -> Any:
        clients: list[int] = []

        def path(server: Any, client: Any, hosts: Any) -> NetworkPath:
            del server, hosts
            pid = client.process.pid
            clients.extend([pid] if pid not in clients else [])
            return NetworkPath(Hop.LOOPBACK, connections=seen[min(clients.index(pid), len(seen) - 1)])

        monkeypatch.setattr(WORKLOADS["fake"].parameters, "opens", property(lambda self: 4))
        rig.swap(observe_path=path)
        (record,) = rig.execute(make_plan(warmup_s=0.1))
        assert record.outcome.ok, record.outcome.reason
        return record

    return run


def test_a_warm_up_that_ended_before_all_had_come_does_not_count_for_the_measuring(counted: Any) -> None:
    record = counted(2, 4)
    assert record.path.connections == 4
    assert not record.notices


def test_where_all_of_the_warm_up_were_seen_the_client_that_measures_is_not_looked_at(counted: Any) -> None:
    record = counted(4, 1)
    assert record.path.connections == 4
    assert not record.notices


def test_a_run_says_of_how_many_connections_the_path_is_not_known(counted: Any) -> None:
    record = counted(2, 3)
    assert record.path.connections == 3
    assert record.notices == ("3 of the client's 4 connections were seen; the path of the others is unknown",)
