"""Where data are lodged: what a task is given, and what it must then see."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tare.deployments import Bind, Layer, Task, Volume
from tare.images import Image, ImageConfig
from tare.record.observation import Observation
from tare.run.parity.declared import storage_mismatch
from tare.run.parity.properties import lies_on
from tare.sites import Output
from tare.storage import DataMount
from tare.study.model import StorageSpec

TASK = Task(
    "task",
    Image("i", "d", "/", None, ImageConfig()),
    ("true",),
    Output("/o", "/e"),
    "tare/x",
    binds=(Bind("/r", "/run"),),
)


def test_a_directory_is_bound() -> None:
    task = DataMount("/host/data", "ext4", "254:0").add_to(TASK, "/data")
    assert task.binds == (Bind("/host/data", "/data"), Bind("/r", "/run"))
    assert task.targets == ("/data", "/run")


def test_a_directory_behind_a_server_is_bound_from_its_mount() -> None:
    task = DataMount("/export/data", "nfs4", "0:53 10.231.0.2", entry="/mount/data").add_to(TASK, "/data")
    assert task.binds[0] == Bind("/mount/data", "/data")


def test_a_volume_goes_by_its_name() -> None:
    task = DataMount("/var/lib/docker/volumes/v/_data", "ext4", "254:0", volume="v").add_to(TASK, "/data")
    assert task.volumes == (Volume("v", "/data"),)
    assert task.binds == TASK.binds


def test_a_layer_is_told_where_it_belongs() -> None:
    task = DataMount("/host/data", "overlay", layer=Layer("/host/data", "", copy_up=True)).add_to(TASK, "/data")
    assert task.layers == (Layer("/host/data", "/data", copy_up=True),)


@pytest.mark.parametrize(
    ("data_mount", "mount", "promised"),
    [
        (DataMount("/d", "ext4", "254:0"), "ext4 254:0", None),
        (DataMount("/d", "ext4", "254:0"), "ext4 7:1", "ext4 254:0"),
        (DataMount("/d", "ext4", "254:0"), "overlay 0:45", "ext4 254:0"),
        (DataMount("/d", "ext4", "254:0"), None, "ext4 254:0"),
        (DataMount("/d", "nfs4", "0:53 10.231.0.2"), "nfs4 0:53 10.231.0.2", None),
        (DataMount("/d", "nfs4", "0:53 10.231.0.2"), "nfs4 0:53 10.231.0.6", "nfs4 0:53 10.231.0.2"),
        (DataMount("/d", "overlay"), "overlay 0:45", None),
        (DataMount("/d", "overlay"), "ext4 254:0", "overlay"),
        (DataMount("/d", "overlay"), None, "overlay"),
    ],
)
def test_what_is_seen_must_be_what_was_made(data_mount: DataMount, mount: str | None, promised: str | None) -> None:
    assert data_mount.mismatch(mount) == promised


def test_a_run_on_another_storage_than_declared_is_told_with_both() -> None:
    spec, data_mount = StorageSpec(kind="tmpfs"), DataMount("/d", "tmpfs", "0:57")
    seen = Observation(cgroups={"cpu": "/tare"}, mounts={"/data": "ext4 254:0"})
    (line,) = storage_mismatch(spec, data_mount, "/data", seen)
    assert line == "SUT: storage tmpfs declared, which is tmpfs 0:57 here; /data is on ext4 254:0"
    assert not storage_mismatch(spec, data_mount, "/data", replace(seen, mounts={"/data": "tmpfs 0:57"}))


def test_a_sut_that_was_not_observed_is_not_judged() -> None:
    assert not storage_mismatch(StorageSpec(), DataMount("/d", "ext4", "254:0"), "/data", None)


@pytest.mark.parametrize(
    ("mount", "option"),
    [
        ("ext4 254:0", "ext4 254:0"),
        ("ext4 7:3", "ext4 on a loop device"),
        ("tmpfs 0:57", "tmpfs"),
        ("overlay 0:45", "overlay"),
        ("nfs4 0:53 10.231.0.2", "nfs4"),
    ],
)
def test_numbers_that_each_mount_has_of_its_own_are_no_difference(mount: str, option: str) -> None:
    assert lies_on(mount) == option
