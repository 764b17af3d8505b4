"""PostgreSQL in containers that are short of shared memory and of memory: what fails, what `tare inspect` says."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from docker import DockerClient
from docker.models.containers import Container
from tests import preloaded

from tare.images.prepare import prepare
from tare.sites.layout import default_layout
from tare.sites.local import LocalHost, own_process
from tare.sites.marks import LABEL
from tare.sites.process import to_ident
from tare.sites.sqlite_ledger import SqliteLedger

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]

SERVER = "initdb -A trust -D /tmp/data > /dev/null && exec postgres -D /tmp/data -k /tmp -c fsync=off"
LOAD = "create unlogged table t as select i, repeat('x', 100) as x from generate_series(1, 1500000) as i"
JOIN = (
    "set work_mem = '1GB'; set parallel_setup_cost = 0; set parallel_tuple_cost = 0; "
    "set max_parallel_workers_per_gather = 2; analyze t; "
    "select count(*) from t as a join t as b using (i) where a.x <> b.x || 'y'"
)
GREEDY = "select length(string_agg(repeat('x', 1000), '')) from generate_series(1, 600000)"
Start = Callable[..., Container]


@pytest.fixture
def start(engine: DockerClient) -> Iterator[Start]:
    cache = default_layout()
    image = prepare(
        "postgresql-15", host=LocalHost(), layout=cache, ledger=SqliteLedger(cache.ledger), engine=engine
    )
    made: list[Container] = []

    def make(**given: Any) -> Container:
        container = engine.containers.create(
            str(image.engine_id),
            entrypoint=["sh", "-c", SERVER],
            name=f"tare-test-memory-{uuid4().hex[:8]}",
            labels={LABEL: to_ident(own_process())},
            **given,
        )
        made.append(container)
        container.start()
        deadline = time.monotonic() + 60
        while asked(container, "select 1").exit_code:
            assert time.monotonic() < deadline, container.logs()
            time.sleep(0.2)
        return container

    yield make
    for container in made:
        container.remove(force=True, v=True)


def asked(container: Container, query: str) -> Any:
    return container.exec_run(["psql", "-h", "/tmp", "-d", "postgres", "-qAtc", query])


def traps(container: Container, tmp_path: Path) -> set[str]:
    done = preloaded.run(
        [sys.executable, "-m", "tare", "inspect", str(container.name), "--json"], cwd=tmp_path, timeout=120
    )
    (server,) = json.loads(done.stdout)["servers"]
    return {each["trap"] for each in server["met"]}


def test_a_parallel_hash_join_fails_at_the_engines_shared_memory_and_not_with_more(
    start: Start, tmp_path: Path
) -> None:
    small, large = start(), start(shm_size=2 << 30)
    for each in (small, large):
        assert asked(each, LOAD).exit_code == 0
    failed, joined = asked(small, JOIN), asked(large, JOIN)
    assert b"could not resize shared memory segment" in failed.output
    assert (joined.exit_code, joined.output.strip()) == (0, b"1500000")
    assert "shm-64m" in traps(small, tmp_path)
    assert "shm-64m" not in traps(large, tmp_path)


def test_a_killed_backend_of_a_server_that_lives_on_is_seen(start: Start, tmp_path: Path) -> None:
    limited = start(mem_limit="200m", memswap_limit="200m")
    assert "oom-kills" not in traps(limited, tmp_path)
    assert b"server closed the connection" in asked(limited, GREEDY).output
    limited.reload()
    assert limited.status == "running"
    assert "oom-kills" in traps(limited, tmp_path)
