"""MySQL and sysbench, really: initialised, loaded, and measured bare and in a container."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from tests.integration.databases.lab import DatabaseLab, make_lab

from tare.databases.registry import DATABASES
from tare.errors import RunFailed
from tare.run.attempt.loading import ensure_snapshot
from tare.run.attempt.server import Server
from tare.sites.engine import connect
from tare.study.values import NetworkKind

# Building the image takes most of a minute.
pytestmark = [pytest.mark.engine, pytest.mark.slow]

ASKED: dict[str, Any] = {
    "script": "oltp_read_only", "tables": 2, "table_size": 500, "threads": 3, "warmup_s": 1, "measure_s": 1,
}  # fmt: skip
SETTINGS = {"innodb_buffer_pool_size": "32M", "innodb_redo_log_capacity": "8M"}


@pytest.fixture(scope="module")
def engine() -> Iterator[DockerClient]:
    client = connect(timeout_s=60)
    yield client
    client.close()


@pytest.fixture(scope="module")
def lab(engine: DockerClient, tmp_path_factory: pytest.TempPathFactory) -> DatabaseLab:
    home = tmp_path_factory.mktemp("home")
    return make_lab(engine, home, "sysbench", "sysbench", "mysql", database="mysql", server=SETTINGS)


def test_bare_and_in_a_container_the_same_server_is_measured(lab: DatabaseLab, tmp_path: Path) -> None:
    settings = {}
    for sut, network in (("bare", NetworkKind.HOST), ("container", NetworkKind.SHARED)):
        with lab.run(lab.settings(sut, "bare", network, **ASKED)) as run:
            settings[sut] = dict(run.server.effective())
            assert run.carry_out("warm-up") == 0
            measurement = run.measure(tmp_path)
            if sut == "bare":
                no_other_account_gets_in(run.server)
            run.server.shut_down()
            secret = run.server.plan.secrets.password.encode()
            kept = [path for path in Path(run.bench.workdir.data).rglob("*") if path.is_file()]
            assert kept
            assert not [path for path in kept if secret in path.read_bytes()]
        assert (measurement.errors, measurement.reconnects) == (0, 0)
        assert measurement.done > 0
    bare, container = settings["bare"], settings["container"]
    assert bare.keys() == container.keys()
    assert {name for name in bare if bare[name] != container[name]} <= DATABASES["mysql"].per_run
    assert (bare["server.product"], bare["account.plugin"]) == ("MySQL", "caching_sha2_password")
    assert (bare["innodb_buffer_pool_size"], bare["innodb_redo_log_capacity"]) == (str(32 << 20), str(8 << 20))


def no_other_account_gets_in(server: Server) -> None:
    """Over TCP nobody without a password, and the `root` of the new data directory is gone."""
    for user in ("root", "mysql", "tare", ""):
        address = ("--protocol=tcp", "--host=127.0.0.1", f"--port={server.plan.port}", f"--user={user}")
        done = server.inside(["mysql", "--no-defaults", *address, "--execute=SELECT 1"], 10, b"")
        assert done.code != 0
        assert b"Access denied" in done.stderr
    asked = ("--batch", "--skip-column-names", "--execute=SELECT User FROM mysql.user ORDER BY 1")
    users = server.inside(["mysql", f"--defaults-file={server.plan.run_dir}/client.cnf", *asked], 10, b"").text
    assert users.split() == ["mysql", "mysql.infoschema", "mysql.session", "mysql.sys", "tare"]


def test_a_setting_of_another_server_ends_the_run_with_its_name(lab: DatabaseLab) -> None:
    settings = lab.settings("bare", "bare", **ASKED)
    wrong = settings.model_copy(
        update={"sut": settings.sut.model_copy(update={"settings": {"aria_pagecache_buffer_size": "8M"}})}
    )
    with pytest.raises(RunFailed, match="unknown variable 'aria_pagecache_buffer_size"):
        ensure_snapshot(lab.machine, wrong, lab.images)
