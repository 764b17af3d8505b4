"""A virtual machine's disk lies on the storage that the study names, and what lies below is seen from outside."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from docker import DockerClient
from tests.integration.deployments.machines import LONG_S, SERVE, MakeMachine, answer_of
from tests.integration.storage.test_storage import FSTYPES, SPECS

from tare.deployments import Deployment, MachineSetting
from tare.deployments.mounts import mount_under
from tare.sites import Host
from tare.sites.ledger import Ledger
from tare.storage import DataRequest
from tare.storage.registry import STORAGES
from tare.study.values import NetworkKind

pytestmark = [pytest.mark.engine, pytest.mark.slow]

FIXTURES = {"vm": "vm", "vm-container": "boxed"}
CASES = [
    (deployment, name)
    for deployment in FIXTURES
    for name, spec in SPECS.items()
    if (allowed := STORAGES[spec.kind].deployments) is None or deployment in allowed
    if spec.cache == "dropped"
]
SIZED = {"tmpfs": {"size": "512M"}}
"""Room for the disk beside what it is made of."""
CACHES = {"tmpfs": "writeback"}


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_disk_lies_where_the_level_says(  # noqa: PLR0917 - fixtures
    kind: str,
    name: str,
    request: pytest.FixtureRequest,
    make: MakeMachine,
    host: Host,
    engine: DockerClient,
    ledger: Ledger,
    tmp_path: Path,
) -> None:
    deployment: Deployment = request.getfixturevalue(FIXTURES[kind])
    spec = SPECS[name].model_copy(update=SIZED.get(name, {}))
    data_request = DataRequest(str(tmp_path / "place"), f"tare-test-{uuid4().hex[:8]}", 1 << 20)
    storage = STORAGES[spec.kind](host, ledger, engine)
    machine = MachineSetting(cache=CACHES.get(name, "none"), disk_bytes=64 << 20)
    try:
        data_mount = storage.prepare(data_request, spec)
        data = Path(data_mount.path)
        data.mkdir(exist_ok=True)
        (data / "seed").write_text("sown")
        for path in (data, data / "seed"):
            os.chown(path, 900, 901)
        bare = replace(make(*SERVE, network=NetworkKind.TAP, machine=machine), binds=())
        instance = deployment.start(data_mount.add_to(bare, "/data"))
        try:
            assert answer_of(instance) == b"answered\n"
            seen = deployment.observe(instance)
            assert data_mount.mismatch(seen.mounts["/data"]) is None
            assert seen.mounts["/data"].split()[0] == FSTYPES.get(name, data_mount.fstype)
            assert seen.guest is not None
            inside, outside = seen.guest.mounts["/data"], seen.guest.disk_files["/data"]
            if data_mount.layer is None:
                assert (inside.split()[0], outside) == ("ext4", seen.mounts["/data"])
            else:
                assert (inside, outside.split()[0]) == (
                    seen.mounts["/data"],
                    mount_under(host, data_request.home).fstype,
                )
            script = "cat /data/seed; echo more >> /data/seed; cat /data/seed; stat -c %u:%g /data"
            done = deployment.exec(instance, ["sh", "-c", script], timeout_s=LONG_S)
            assert (done.code, done.stdout) == (0, b"sownsownmore\n900:901\n"), done.stderr
        finally:
            deployment.stop(instance, grace_s=1)
    finally:
        storage.clear(data_request)
    assert not Path(data_request.home).exists()
