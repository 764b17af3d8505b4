"""NFS storage on the real machine: a real server in its namespace, spoken to by a client that needs no kernel's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.integration.hosts.reached import noted

from tare.deployments.sweep import sweep
from tare.errors import EnvironmentLacks
from tare.requirements import HostPlan
from tare.sites import Host
from tare.sites.ledger import Kind, Ledger
from tare.sites.process import alive
from tare.storage import DataRequest
from tare.storage.nfs import server as server_module
from tare.storage.nfs.client import NFS
from tare.storage.nfs.nfs import NfsStorage
from tare.storage.nfs.server import GaneshaServer
from tare.study.model import StorageSpec

pytestmark = pytest.mark.engine


@pytest.fixture
def ganesha(host: Host, ledger: Ledger, tmp_path: Path) -> Iterator[GaneshaServer]:
    home = f"{ledger.home(host.name)}/work/{tmp_path.name}"
    ganesha = GaneshaServer(host, ledger, home, f"tare-test-{uuid4().hex[:8]}")
    yield ganesha
    ganesha.end()
    assert noted(ledger) == []
    assert not Path(f"/sys/class/net/{ganesha.link}").exists()


def spoken(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_served_is_listed_written_and_read_by_another_s_client(
    ganesha: GaneshaServer, host: Host, tmp_path: Path
) -> None:
    server = ganesha.serve(sync=True)
    data = Path(server.export) / "data"
    data.mkdir()
    (data / "seed").write_text("sown\n")
    os.chown(data / "seed", 900, 901)
    (tmp_path / "brought").write_text("kept\n")
    url = f"nfs://{server.address}/data"

    assert spoken("nfs-ls", f"{url}?version=4").split()[2:4] == ["900", "901"]
    assert spoken("nfs-cat", f"{url}/seed?version=4").strip() == "sown"
    spoken("nfs-cp", str(tmp_path / "brought"), f"{url}/written?version=4")
    assert (data / "written").read_text() == "kept\n"

    namespaces = host.run(["readlink", "/proc/self/ns/net", f"/proc/{server.process.pid}/ns/net"], timeout_s=60)
    assert len(set(namespaces.text.split())) == 2
    assert (data / "seed").stat().st_dev == tmp_path.stat().st_dev
    ganesha.end()
    assert not alive(host, server.process)


def test_two_servers_stand_beside_each_other(ganesha: GaneshaServer, host: Host, ledger: Ledger) -> None:
    other = GaneshaServer(host, ledger, f"{ganesha.home}-2", f"{ganesha.name}-2")
    try:
        addresses = {ganesha.serve(sync=False).address, other.serve(sync=False).address}
        for address in addresses:
            spoken("nfs-ls", f"nfs://{address}/?version=4")
    finally:
        other.end()
    assert len(addresses) == 2


def test_what_a_killed_tare_left_is_swept(ganesha: GaneshaServer, host: Host, ledger: Ledger) -> None:
    server = ganesha.serve(sync=False)
    ledger.note(Kind.PATH, ganesha.home)
    ledger.note(Kind.MOUNT, f"{ganesha.home}/mount")  # as where it was killed before it had mounted
    swept = sweep(ledger.entries(), {host.name: host}, None, ledger)
    assert swept.failed == []
    # The link goes with the server's namespace, be it by the kernel or by the sweep, whoever is first.
    assert [kind for what in swept.removed if (kind := what.split()[0]) != "link"] == ["server", "path"]
    assert noted(ledger) == []
    assert not alive(host, server.process)
    assert not Path(ganesha.home).exists()


def test_a_server_that_was_killed_is_cleared_away(ganesha: GaneshaServer, host: Host) -> None:
    server = ganesha.serve(sync=False)
    host.run(["kill", "-KILL", str(server.process.pid)], timeout_s=60)
    ganesha.end()
    assert not alive(host, server.process)


def test_a_server_that_ends_at_once_is_told_of(ganesha: GaneshaServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "GANESHA", "false")
    with pytest.raises(EnvironmentLacks, match=r"ended before it served: .*nfs-ganesha-vfs"):
        ganesha.serve(sync=False)


def test_a_machine_without_a_client_is_told_so_and_left_as_it_was(
    host: Host, ledger: Ledger, tmp_path: Path
) -> None:
    """Where there is one, the storage is tried whole with all others."""
    if NFS.why_not(HostPlan(host)) is None:
        pytest.skip("this kernel has an NFS client")
    storage, request = (
        NfsStorage(host, ledger),
        DataRequest(str(tmp_path / "place"), f"tare-test-{uuid4().hex[:8]}", 0),
    )
    with pytest.raises(EnvironmentLacks, match="no NFS client"):
        storage.prepare(request, StorageSpec(kind="nfs"))
    storage.clear(request)
    assert noted(ledger) == []
    assert not Path(request.home).exists()
