"""A server at a Unix socket, bare and in a container, with a client in either: no connection takes TCP."""

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
STUDY = """\
format: 1
name: socket
question: What does TCP on loopback cost?
sut: {{image: {image}, database: {database}, deployment: bare}}
client: {{image: sysbench, deployment: bare}}
workload: {{name: sysbench, script: oltp_read_only, tables: 1, table_size: 200, threads: 2, measure_s: 10}}
protocol: {{name: fixed, blocks: 1, control: false}}
factors:
  path: {{sets: sut.network, levels: {{tcp: host, unix: socket}}}}
  model: {{sets: sut.deployment, levels: {{bare: bare, boxed: container}}}}
  load: {{sets: client.deployment, levels: {{bare-load: bare, boxed-load: container}}}}
exclude:
  - {{path: tcp, load: boxed-load}}
  - {{path: tcp, model: boxed}}
baseline: {{path: tcp, model: bare, load: bare-load}}
"""


@pytest.mark.engine
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("database", "image"), [("mariadb", "mariadb"), ("postgresql", "postgresql-15")])
def test_clients_reach_a_server_by_its_socket(database: str, image: str, tmp_path: Path) -> None:
    for each in (image, "sysbench"):
        build = [sys.executable, "-m", "tare", "images", "build", each]
        assert preloaded.run(build, timeout=500).returncode == 0
    (tmp_path / "study.yaml").write_text(STUDY.format(database=database, image=image))
    command = [sys.executable, "-m", "tare", "run", "study.yaml", "--store", "store", "--format", "json", "--quiet"]
    done = preloaded.run(command, cwd=tmp_path, timeout=400)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["good"] == 5
    for record in open_store(tmp_path / "store").records():
        assert record.path is not None
        assert record.path.hop == ("loopback" if record.levels["path"] == "tcp" else "socket")
        assert record.path.connections == 2
