"""A server at a Unix socket or at ::1, bare and in a container: connections take it and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests import preloaded

from tare.store.read import open_store
from tare.study.values import NetworkKind

PLACED = ("bare", "container")
TRIED = {((sut, NetworkKind.SOCKET.value), (client, NetworkKind.HOST.value)) for sut in PLACED for client in PLACED}
SYSBENCH = "{name: sysbench, script: oltp_read_only, tables: 1, table_size: 200, threads: 2, measure_s: 6}"
TARE_LOAD = """{name: tare-load, connections: 2, measure_s: 6,
  job: {operations: [{name: set, steps: [{send: SET a b}]}], load: {records: 1, steps: [{send: SET a b}]}}}"""
STUDY = """\
format: 1
name: socket
question: What does TCP on loopback cost?
sut: {{image: {image}, database: {database}, deployment: bare, limits: {{cpus: "0"}}}}
client: {{image: {client}, deployment: bare, limits: {{cpus: "0"}}}}
workload: {workload}
protocol: {{name: fixed, blocks: 1, control: false}}
factors:
  path:
    sets: [sut.network, sut.bind]
    levels: {{tcp: {{}}, unix: {{sut.network: socket}}, ipv6: {{sut.bind: "::1"}}}}
  model: {{sets: sut.deployment, levels: {{bare: bare, boxed: container}}}}
  load: {{sets: client.deployment, levels: {{bare-load: bare, boxed-load: container}}}}
exclude:
  - {{path: [tcp, ipv6], load: boxed-load}}
  - {{path: tcp, model: boxed}}
baseline: {{path: tcp, model: bare, load: bare-load}}
"""


@pytest.mark.engine
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("database", "image"),
    [
        ("mariadb", "mariadb"),
        ("redis", "redis-7"),
        pytest.param("postgresql", "postgresql-15", marks=pytest.mark.slow),
    ],
)
def test_clients_reach_a_server_by_its_socket_or_at_its_address(database: str, image: str, tmp_path: Path) -> None:
    workload, client = (TARE_LOAD, "tare-load") if database == "redis" else (SYSBENCH, "sysbench")
    for each in {image, client} - {"tare-load"}:
        build = [sys.executable, "-m", "tare", "images", "build", each]
        assert preloaded.run(build, timeout=500).returncode == 0
    (tmp_path / "study.yaml").write_text(
        STUDY.format(database=database, image=image, client=client, workload=workload)
    )
    command = [sys.executable, "-m", "tare", "run", "study.yaml", "--store", "store", "--format", "json", "--quiet"]
    done = preloaded.run(command, cwd=tmp_path, timeout=400)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["good"] == 7
    for record in (each for each in open_store(tmp_path / "store").records() if each.outcome.ok):
        if not record.outcome.ok:
            continue  # on a busy machine an attempt may end before its connections are seen
        assert record.path is not None
        path = record.levels["path"]
        assert record.path.hop == ("socket" if path == "unix" else "loopback")
        assert record.path.client_dialled is not None
        assert path == "unix" or record.path.client_dialled.address == {"tcp": "127.0.0.1", "ipv6": "::1"}[path]
        assert record.path.connections == 2
