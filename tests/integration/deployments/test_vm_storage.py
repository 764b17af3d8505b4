"""A virtual machine's disk lies on the storage that the study names, and what lies below is seen from outside."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from docker import DockerClient
from tests.integration.deployments.machines import LONG_S, SERVE, MakeMachine

from tare.deployments import Deployment
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger
from tare.storage import STORAGES, Lot
from tare.study.model import StorageSpec

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SPECS = {
    "tmpfs": StorageSpec(kind="tmpfs", size="512M"),
    "xfs": StorageSpec(kind="block", file_system="xfs", size="512M"),
}


@pytest.mark.parametrize("name", SPECS)
def test_the_disk_lies_where_the_level_says(  # noqa: PLR0917 - fixtures
    name: str,
    vm: Deployment,
    make: MakeMachine,
    host: LocalHost,
    engine: DockerClient,
    ledger: SqliteLedger,
    tmp_path: Path,
) -> None:
    spec, lot = SPECS[name], Lot(str(tmp_path / "place"), f"tare-test-{uuid4().hex[:8]}", 1 << 20)
    storage = STORAGES[spec.kind](host, ledger, engine)
    try:
        lodging = storage.lodge(lot, spec)
        data = Path(lodging.path)
        data.mkdir()
        (data / "seed").write_text("sown")
        os.chown(data, 900, 901)
        instance = vm.start(lodging.given(replace(make(*SERVE), binds=()), "/data"))
        try:
            seen = vm.observe(instance)
            assert lodging.seen_wrong(seen.mounts["/data"]) is None
            assert seen.mounts["/data"].split()[0] == name
            assert (seen.guest or {})["mounts"]["/data"].split()[0] == "ext4"
            assert vm.exec(instance, ["cat", "/data/seed"], timeout_s=LONG_S).stdout == b"sown"
        finally:
            vm.stop(instance, grace_s=1)
    finally:
        storage.clear(lot)
    assert not Path(lot.home).exists()
