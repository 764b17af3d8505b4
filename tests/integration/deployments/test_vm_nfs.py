"""The kernel's own NFS client against tare's own server: in a virtual machine, whose kernel surely has one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from tests.integration.deployments.machines import LONG_S, MakeMachine

from tare.deployments import Deployment, Instance, Limits, Task
from tare.deployments.directories import force_unmount
from tare.deployments.observe import mounts_of
from tare.deployments.vm import kernel as vm_kernel
from tare.deployments.vm.guest import GuestHost
from tare.errors import EnvironmentLacks
from tare.images import Image
from tare.sites import Completed, Host
from tare.sites.ledger import Ledger
from tare.storage.nfs.client import NfsMount, mount_export
from tare.storage.nfs.server import GaneshaServer, NfsEndpoint

pytestmark = [pytest.mark.engine, pytest.mark.slow]

TOOLS = ("mount", "umount", "stat", "install", "realpath", "ldd")
MOUNTED = "/mnt/nfs"


class Inside(GuestHost):
    """A machine's inside as its task's superuser finds it, with the programs of the task's image."""

    def execute(
        self, argv: Sequence[str], *, timeout_s: float, stdin: bytes = b"", inside: bool = True, user: str = "root"
    ) -> Completed:
        limit_s = max(timeout_s, LONG_S)  # its CPU is an emulated one
        return super().execute(argv, timeout_s=limit_s, stdin=stdin, inside=inside, user=user)

    def read(self, path: str) -> bytes | None:
        return self.run(["cat", path], timeout_s=LONG_S).stdout


@pytest.fixture
def equipped(image: Image, tmp_path: Path) -> Image:
    """The small image, with util-linux's mount and GNU's tools in place of busybox's, as a host has them."""
    rootfs = tmp_path / "equipped" / "rootfs"
    shutil.copytree(image.rootfs, rootfs, symlinks=True)
    (rootfs / "mnt" / "nfs").mkdir(parents=True)
    for tool in TOOLS:
        program = shutil.which(tool)
        assert program is not None
        (rootfs / "bin" / tool).unlink(missing_ok=True)
        shutil.copy(program, rootfs / "bin" / tool)
        libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=False, timeout=60).stdout
        for library in (word for word in libraries.split() if word.startswith("/")):
            target = rootfs / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
    return replace(image, rootfs=str(rootfs), digest=f"sha256:{uuid4().hex}")


@pytest.fixture
def server(host: Host, ledger: Ledger, tmp_path: Path) -> Iterator[NfsEndpoint]:
    home = tmp_path / "served"
    home.mkdir()
    ganesha = GaneshaServer(host, ledger, str(home), f"tare-test-{uuid4().hex[:8]}")
    try:
        yield ganesha.serve(sync=False)
    finally:
        ganesha.end()


def test_a_kernel_mounts_what_is_served_and_lets_go_of_it_when_the_server_is_dead(  # noqa: PLR0917 - fixtures
    vm: Deployment,
    make: MakeMachine,
    started: Callable[[Deployment, Task], Instance],
    equipped: Image,
    server: NfsEndpoint,
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vm_kernel, "MODULES", (*vm_kernel.MODULES, "nfsv4"))
    data = Path(server.export) / "data"
    data.mkdir()
    (data / "seed").write_text("sown\n")
    for path in (data, data / "seed"):
        os.chown(path, 900, 901)
    task = replace(make("sleep", "600", limits=Limits(cpus="0", memory_bytes=256 << 20)), image=equipped)
    instance = started(vm, task)
    inside = Inside.of(host, instance)

    nfs_mount = NfsMount(server.address, "10.0.2.15", rsize="64K", wsize="32K")
    mount = mount_export(inside, nfs_mount, MOUNTED)
    assert mount.fstype == "nfs4"
    assert {f"addr={server.address}", "vers=4.2", "softerr", "rsize=65536", "wsize=32768"} <= set(
        mount.super_options
    )
    mountinfo = (inside.read("/proc/self/mountinfo") or b"").decode()
    assert mounts_of(mountinfo, [f"{MOUNTED}/data"]) == {f"{MOUNTED}/data": f"nfs4 {mount.device} {server.address}"}
    inode = inside.run(["stat", "-c", "%i", "--", MOUNTED], timeout_s=60).text.strip()
    assert int(inode) == Path(server.export).stat().st_ino

    look = f"stat -c '%u %g' {MOUNTED}/data/seed; cat {MOUNTED}/data/seed; echo kept > {MOUNTED}/data/written"
    done = vm.exec(instance, ["sh", "-c", f"{look} && sync {MOUNTED}/data/written"], timeout_s=LONG_S)
    assert (done.code, done.stdout.split()) == (0, [b"900", b"901", b"sown"])
    assert (data / "written").read_text() == "kept\n"
    assert (data / "written").stat().st_uid == 900

    held = f"(exec 3> {MOUNTED}/data/held; echo dirty >&3; sleep 600) > /dev/null 2>&1 &"
    assert vm.exec(instance, ["sh", "-c", held], timeout_s=LONG_S).code == 0
    host.run(["kill", "-KILL", str(server.process.pid)], timeout_s=60)
    late = vm.exec(instance, ["sh", "-c", f"echo late > {MOUNTED}/data/late"], timeout_s=2 * LONG_S)
    assert late.code != 0  # in the end, where a hard mount would wait for ever
    assert force_unmount(inside, MOUNTED)
    assert MOUNTED not in (inside.read("/proc/self/mountinfo") or b"").decode()
    with pytest.raises(EnvironmentLacks, match="cannot be mounted"):
        mount_export(inside, nfs_mount, MOUNTED)
