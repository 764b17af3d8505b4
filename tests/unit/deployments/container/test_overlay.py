"""Where the writable layer of a container lies: by the engine's word, or by containerd's, and by the kernel's."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from tare.deployments.container.overlay import Overlay, must_be_root, overlay_of
from tare.errors import EnvironmentLacks, RunFailed
from tare.sites import Completed
from tare.sites.fake import FakeHost

SNAPSHOTS = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots"
SNAPSHOT = Overlay(f"{SNAPSHOTS}/9/fs", (f"{SNAPSHOTS}/8/fs", f"{SNAPSHOTS}/2/fs"))
MOUNTS = (
    f"mount -t overlay overlay / -o index=off,workdir={SNAPSHOTS}/9/work,upperdir={SNAPSHOT.upper},"
    f"lowerdir={':'.join(SNAPSHOT.lower)}\n"
)
"""What `ctr snapshots mounts` prints."""
CTR = (
    "ctr", "--address", "/run/containerd/containerd.sock", "--namespace", "moby",
    "snapshots", "--snapshotter", "overlayfs", "mounts", "/", "c0ffee",
)  # fmt: skip
INFO: dict[str, Any] = {
    "Driver": "overlayfs",
    "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]],
    "Containerd": {"Address": CTR[2], "Namespaces": {"Containers": "moby", "Plugins": "plugins.moby"}},
}


def container(driver: object) -> Any:
    return MagicMock(id="c0ffee", attrs={"GraphDriver": driver})


def engine(info: dict[str, Any] = INFO) -> Any:
    made = MagicMock()
    made.info.return_value = info
    return made


def root_of(upper: str) -> FakeHost:
    line = (
        f"900 800 0:70 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/l:/m,upperdir={upper},workdir=/w\n"
    )
    return FakeHost(files={"/proc/7/mountinfo": line.encode()})


def test_an_engine_with_directories_of_its_own_names_them() -> None:
    named = {"Name": "overlay2", "Data": {"UpperDir": "/o/1/diff", "LowerDir": "/o/1-init/diff:/o/0/diff"}}
    host = FakeHost()
    assert overlay_of(engine(), host, container(named)) == Overlay("/o/1/diff", ("/o/1-init/diff", "/o/0/diff"))
    assert host.asked == []


@pytest.mark.parametrize("driver", [{"Name": "overlayfs", "Data": None}, None])  # Docker 28, Docker 29
@pytest.mark.parametrize("info", [INFO, {**INFO, "Containerd": None}])  # Docker 26 does not name its containerd
def test_containerd_tells_the_directories_of_a_container_that_is_a_snapshot(
    driver: object, info: dict[str, Any]
) -> None:
    host = FakeHost(answers={CTR: Completed((), 0, stdout=MOUNTS.encode(), stderr=b"")})
    assert overlay_of(engine(info), host, container(driver)) == SNAPSHOT


@pytest.mark.parametrize(
    "info",
    [
        {"Driver": "vfs"},
        {**INFO, "DriverStatus": [["Backing Filesystem", "zfs"]]},
        {**INFO, "Driver": "native"},
    ],
)
def test_an_engine_without_an_overlay_is_refused_by_the_name_of_its_driver(info: dict[str, Any]) -> None:
    host = FakeHost(
        answers={CTR[:5]: Completed((), 0, stdout=b"mount -t bind /snapshots/9 / -o rw,rbind\n", stderr=b"")}
    )
    with pytest.raises(EnvironmentLacks, match=f"this one uses {info['Driver']} "):
        overlay_of(engine(info), host, container(None))


@pytest.mark.parametrize("upper", [SNAPSHOT.upper, "9/fs"])
def test_the_data_are_where_the_kernel_has_the_root_s_writable_directory(upper: str) -> None:
    must_be_root(root_of(upper), SNAPSHOT, 7, "tare-x-s")


@pytest.mark.parametrize("upper", [f"{SNAPSHOTS}/10/fs", "10/fs", "s/9/fs/more"])
def test_data_in_a_directory_that_is_not_the_root_s_end_the_run(upper: str) -> None:
    with pytest.raises(RunFailed, match=rf"put into .*/snapshots/9/fs, and the container writes to {upper}$"):
        must_be_root(root_of(upper), SNAPSHOT, 7, "tare-x-s")


def test_a_root_that_is_no_overlay_ends_the_run() -> None:
    host = FakeHost(files={"/proc/7/mountinfo": b"900 800 0:70 / / rw - fuse.fuse-overlayfs fuse-overlayfs rw\n"})
    with pytest.raises(RunFailed, match=r"writes to fuse\.fuse-overlayfs$"):
        must_be_root(host, SNAPSHOT, 7, "tare-x-s")


def test_a_program_that_has_ended_is_left_to_who_started_it() -> None:
    must_be_root(FakeHost(), SNAPSHOT, 7, "tare-x-s")
