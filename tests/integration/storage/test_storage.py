"""Every storage on the real machine: what was made is what the task sees, and nothing is left of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pytest
from docker import DockerClient
from tests.integration.hosts.reached import Reached, noted

from tare.deployments import Deployment, Task
from tare.deployments.container.overlay import overlay_of
from tare.deployments.directories import sync_and_evict
from tare.deployments.registry import DEPLOYMENTS
from tare.deployments.sweep import sweep
from tare.errors import EnvironmentLacks
from tare.images import Image
from tare.requirements import HostPlan
from tare.sites import Host, Output
from tare.sites.ledger import Kind, Ledger
from tare.sites.marks import group_of
from tare.storage import DataMount, DataRequest, Storage
from tare.storage.nfs.client import NFS
from tare.storage.registry import STORAGES
from tare.study.model import StorageSpec

pytestmark = pytest.mark.engine

MIB = 1 << 20
SPECS = {
    "bind": StorageSpec(),
    "layer": StorageSpec(kind="layer"),
    "layer-copied-up": StorageSpec(kind="layer", copy_up=True),
    "volume": StorageSpec(kind="volume"),
    "tmpfs": StorageSpec(kind="tmpfs", size="64M"),
    "ext4": StorageSpec(kind="block"),
    "xfs": StorageSpec(kind="block", file_system="xfs"),
    "btrfs": StorageSpec(kind="block", file_system="btrfs"),
    "nfs": StorageSpec(kind="nfs", rsize="64K"),
    "nfs-warmed": StorageSpec(kind="nfs", cache="warmed"),
    "warmed": StorageSpec(cache="warmed"),
}
FSTYPES = {
    "layer": "overlay",
    "layer-copied-up": "overlay",
    "tmpfs": "tmpfs",
    "xfs": "xfs",
    "btrfs": "btrfs",
    "ext4": "ext4",
    "nfs": "nfs4",
    "nfs-warmed": "nfs4",
}
CASES = [
    (deployment, name)
    for deployment in ("bare", "container")
    for name, spec in SPECS.items()
    if (allowed := STORAGES[spec.kind].deployments) is None or deployment in allowed
]


@pytest.fixture
def data_request(host: Host, ledger: Ledger) -> Iterator[DataRequest]:
    home = Path(ledger.home(host.name)) / "work" / uuid4().hex[:8]
    home.mkdir(parents=True)
    yield DataRequest(str(home / "place"), f"tare-test-{uuid4().hex[:8]}", 8 * MIB)
    assert str(home) not in Path("/proc/self/mountinfo").read_text()
    loops = subprocess.run(
        ["losetup", "--list", "--noheadings"], capture_output=True, text=True, check=True, timeout=60
    )
    assert str(home) not in loops.stdout


@dataclass(frozen=True)
class Rig:
    """A machine, and a place on it."""

    host: Host
    engine: DockerClient
    ledger: Ledger
    data_request: DataRequest
    task: Task

    def storage(self, kind: str) -> Storage:
        return STORAGES[kind](self.host, self.ledger, self.engine)

    def deployment(self, kind: str) -> Deployment:
        return DEPLOYMENTS[kind](self.host, self.ledger, self.engine)


def lodged(rig: Rig, spec: StorageSpec) -> DataMount:
    """With two files in it, owned by the image's user."""
    if spec.kind == "nfs" and (why := NFS.why_not(HostPlan(rig.host))) is not None:
        pytest.skip(why)  # what of NFS needs no client of the host's kernel is in test_nfs.py and test_vm_nfs.py
    data_mount = rig.storage(spec.kind).prepare(rig.data_request, spec)
    data = Path(data_mount.path)
    data.mkdir(exist_ok=True)
    (data / "large").write_bytes(b"x" * MIB)
    (data / "below").mkdir()
    (data / "below" / "small").write_text("kept\n")
    for path in (data, data / "large", data / "below", data / "below" / "small"):
        os.chown(path, 900, 901)
    data.chmod(0o750)
    return data_mount


@pytest.fixture
def rig(reached: Reached, ledger: Ledger, data_request: DataRequest, image: Image, tmp_path: Path) -> Rig:
    output = Output(str(tmp_path / "task.out"), str(tmp_path / "task.err"))
    return Rig(
        reached.host,
        reached.engine,
        ledger,
        data_request,
        Task(
            data_request.name,
            image,
            ("sleep", "600"),
            output,
            group_of(data_request.name, ledger.owner_on(reached.host.name)),
        ),
    )


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_data_are_where_the_level_says(kind: str, name: str, rig: Rig) -> None:
    spec, data_request = SPECS[name], rig.data_request
    deployment = rig.deployment(kind)
    try:
        data_mount = lodged(rig, spec)
        instance = deployment.start(data_mount.add_to(rig.task, "/data"))
        try:
            mount = deployment.observe(instance).mounts["/data"]
            assert data_mount.mismatch(mount) is None
            assert mount.split()[0] == FSTYPES.get(name, data_mount.fstype)
            look = "stat -c '%u %g %a' /data; cat /data/below/small; echo more >> /data/large && echo wrote"
            seen = deployment.exec(instance, ["sh", "-c", look], timeout_s=30)
            assert seen.text.split() == ["900", "901", "750", "kept", "wrote"], seen
            # By the device number of the directory itself, too, as a process in there gets it.
            inside = Path(f"/proc/{instance.process.pid}/root/data").stat().st_dev
            beside = Path(data_request.home).parent.stat().st_dev
            assert (inside == beside) == (name in ("bind", "warmed", "volume"))
        finally:
            deployment.stop(instance, grace_s=1)
    finally:
        rig.storage(spec.kind).clear(data_request)
    assert noted(rig.ledger) == []
    assert not Path(data_request.home).exists()
    assert not rig.engine.images.list(filters={"reference": f"tare/run:{data_request.name}*"})
    assert not rig.engine.volumes.list(filters={"name": data_request.name})


CACHED = [
    ("bare", "bind"),
    *(("container", name) for name in ("bind", "layer", "layer-copied-up", "volume", "ext4", "nfs")),
]


@pytest.mark.parametrize("cache", ["dropped", "warmed"])
@pytest.mark.parametrize(("kind", "name"), CACHED)
def test_the_page_cache_is_as_the_level_says(kind: str, name: str, cache: str, rig: Rig) -> None:
    """Of a tmpfs there is nothing to say: its pages are nowhere else."""
    spec = SPECS[name].model_copy(update={"cache": cache})
    wanted = MIB if cache == "warmed" else 0
    seen = [resident_of_large(kind, spec, rig)]
    while seen[-1] < wanted and pages_out_by_itself() and len(seen) < ATTEMPTS:
        seen.append(resident_of_large(kind, spec, rig))
    assert seen[-1] == wanted, seen


ATTEMPTS = 3


def pages_out_by_itself() -> bool:
    """Whether the kernel pages out what seems cold although memory is free, single pages at any time (DAMON)."""
    return any(Path("/sys/kernel/mm/damon/admin/kdamonds").glob("*/contexts/*/schemes/*/action"))


def resident_of_large(kind: str, spec: StorageSpec, rig: Rig) -> int:
    """Bytes of it in the page cache once the server has begun."""
    deployment, warmed = rig.deployment(kind), spec.cache == "warmed"
    try:
        data_mount = lodged(rig, spec)
        if data_mount.layer is None:
            sync_and_evict(rig.host, data_mount.path, warmed=warmed)
        if data_mount.entry is not None and warmed:
            sync_and_evict(rig.host, data_mount.entry, warmed=True)
        instance = deployment.start(data_mount.add_to(rig.task, "/data"))
        try:
            large = f"/proc/{instance.process.pid}/root/data/large"
            return int(done("fincore", "--bytes", "--noheadings", "--output", "RES", large))
        finally:
            deployment.stop(instance, grace_s=1)
    finally:
        rig.storage(spec.kind).clear(rig.data_request)


@pytest.mark.parametrize("copy_up", [False, True])
def test_the_first_write_copies_a_file_up_or_finds_it_there(copy_up: bool, rig: Rig) -> None:
    deployment = rig.deployment("container")
    try:
        data_mount = lodged(rig, StorageSpec(kind="layer", copy_up=copy_up))
        instance = deployment.start(data_mount.add_to(rig.task, "/data"))
        try:
            container = rig.engine.containers.get(rig.data_request.name)
            large = Path(overlay_of(rig.engine, rig.host, container).upper) / "data" / "large"
            assert large.exists() == (not copy_up)
            deployment.exec(instance, ["sh", "-c", "echo more >> /data/large"], timeout_s=30)
            assert large.stat().st_size == MIB + len("more\n")
        finally:
            deployment.stop(instance, grace_s=1)
    finally:
        rig.storage("layer").clear(rig.data_request)


def test_a_layer_does_not_mix_the_image_s_own_files_with_the_data(rig: Rig) -> None:
    try:
        task = lodged(rig, StorageSpec(kind="layer")).add_to(rig.task, "/etc")
        with pytest.raises(EnvironmentLacks, match="files of its own in /etc"):
            rig.deployment("container").start(task)
    finally:
        rig.storage("layer").clear(rig.data_request)
    assert noted(rig.ledger) == []


def test_a_device_that_holds_something_is_left_alone(rig: Rig) -> None:
    image = Path(rig.data_request.home).parent / "disk"
    done("fallocate", "-l", str(64 * MIB), str(image))
    done("mkfs.ext4", "-q", "-F", "-L", "mine", str(image))
    device = done("losetup", "--find", "--show", str(image)).strip()
    storage, spec = rig.storage("block"), StorageSpec(kind="block", device=device)
    try:
        with pytest.raises(EnvironmentLacks, match="holds ext4 that tare did not make"):
            storage.prepare(rig.data_request, spec)
        done("wipefs", "--all", device)
        number = Path(device).stat().st_rdev
        for _ in range(2):  # empty, then with what tare itself has made
            assert storage.prepare(rig.data_request, spec).device == f"{os.major(number)}:{os.minor(number)}"
            storage.clear(rig.data_request)
    finally:
        storage.clear(rig.data_request)
        done("losetup", "--detach", device)
        image.unlink()


def test_a_tmpfs_is_as_large_as_asked_and_full_beyond_it(rig: Rig) -> None:
    storage = rig.storage("tmpfs")
    try:
        data_mount = storage.prepare(rig.data_request, StorageSpec(kind="tmpfs", size="8M"))
        Path(data_mount.path).mkdir()
        with pytest.raises(OSError, match="No space left"):
            (Path(data_mount.path) / "large").write_bytes(b"x" * (9 * MIB))
    finally:
        storage.clear(rig.data_request)


def test_what_a_killed_tare_left_is_swept(rig: Rig) -> None:
    data_request = rig.data_request
    rig.ledger.note(Kind.PATH, data_request.home)
    rig.storage("block").prepare(data_request, StorageSpec(kind="block"))
    rig.storage("volume").prepare(
        replace(data_request, home=f"{data_request.home}-volume"), StorageSpec(kind="volume")
    )
    swept = sweep(rig.ledger.entries(), {rig.host.name: rig.host}, rig.engine, rig.ledger)
    assert swept.failed == []
    assert noted(rig.ledger) == []
    assert not Path(data_request.home).exists()
    assert not rig.engine.volumes.list(filters={"name": data_request.name})


def done(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout
