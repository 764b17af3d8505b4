"""Where data are lodged: what a task is given, and what it must then see."""

from __future__ import annotations

import pytest

from tare.deployments import Bind, Layer, Task, Volume
from tare.images import Image, ImageConfig
from tare.run.parity.declared import not_lodged
from tare.run.parity.properties import lies_on
from tare.sites import Output
from tare.storage import Lodging
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
    task = Lodging("/host/data", "ext4", "254:0").given(TASK, "/data")
    assert task.binds == (Bind("/host/data", "/data"), Bind("/r", "/run"))
    assert task.targets == ("/data", "/run")


def test_a_directory_behind_a_server_is_bound_from_its_mount() -> None:
    task = Lodging("/export/data", "nfs4", "0:53 10.231.0.2", entry="/mount/data").given(TASK, "/data")
    assert task.binds[0] == Bind("/mount/data", "/data")


def test_a_volume_goes_by_its_name() -> None:
    task = Lodging("/var/lib/docker/volumes/v/_data", "ext4", "254:0", volume="v").given(TASK, "/data")
    assert task.volumes == (Volume("v", "/data"),)
    assert task.binds == TASK.binds


def test_a_layer_is_told_where_it_belongs() -> None:
    task = Lodging("/host/data", "overlay", layer=Layer("/host/data", "", copy_up=True)).given(TASK, "/data")
    assert task.layers == (Layer("/host/data", "/data", copy_up=True),)


@pytest.mark.parametrize(
    ("lodging", "mount", "promised"),
    [
        (Lodging("/d", "ext4", "254:0"), "ext4 254:0", None),
        (Lodging("/d", "ext4", "254:0"), "ext4 7:1", "ext4 254:0"),
        (Lodging("/d", "ext4", "254:0"), "overlay 0:45", "ext4 254:0"),
        (Lodging("/d", "ext4", "254:0"), None, "ext4 254:0"),
        (Lodging("/d", "nfs4", "0:53 10.231.0.2"), "nfs4 0:53 10.231.0.2", None),
        (Lodging("/d", "nfs4", "0:53 10.231.0.2"), "nfs4 0:53 10.231.0.6", "nfs4 0:53 10.231.0.2"),
        (Lodging("/d", "overlay"), "overlay 0:45", None),
        (Lodging("/d", "overlay"), "ext4 254:0", "overlay"),
        (Lodging("/d", "overlay"), None, "overlay"),
    ],
)
def test_what_is_seen_must_be_what_was_made(lodging: Lodging, mount: str | None, promised: str | None) -> None:
    assert lodging.seen_wrong(mount) == promised


def test_a_run_on_another_storage_than_declared_is_told_with_both() -> None:
    spec, lodging = StorageSpec(kind="tmpfs"), Lodging("/d", "tmpfs", "0:57")
    seen = {"sut": {"cgroups": {"cpu": "/tare"}, "mounts": {"/data": "ext4 254:0"}}}
    (told,) = not_lodged(spec, lodging, "/data", seen)
    assert told == "SUT: storage tmpfs declared, which is tmpfs 0:57 here; /data is on ext4 254:0"
    seen["sut"]["mounts"] = {"/data": "tmpfs 0:57"}
    assert not not_lodged(spec, lodging, "/data", seen)


def test_a_sut_that_was_not_observed_is_not_judged() -> None:
    assert not not_lodged(StorageSpec(), Lodging("/d", "ext4", "254:0"), "/data", {"sut": None})


@pytest.mark.parametrize(
    ("mount", "told"),
    [
        ("ext4 254:0", "ext4 254:0"),
        ("ext4 7:3", "ext4 on a loop device"),
        ("tmpfs 0:57", "tmpfs"),
        ("overlay 0:45", "overlay"),
        ("nfs4 0:53 10.231.0.2", "nfs4"),
    ],
)
def test_numbers_that_each_mount_has_of_its_own_are_no_difference(mount: str, told: str) -> None:
    assert lies_on(mount) == told
