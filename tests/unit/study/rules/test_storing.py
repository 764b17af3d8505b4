"""Which storages a SUT can have: refused when the study is read, at the key that made the clash."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tare.study.model import LimitsSpec, StorageSpec, SutSpec
from tare.study.registry import installed
from tare.study.rules.placement import refuse_storage

STORAGES = installed().storages


def refused(deployment: str, **storage: Any) -> str | None:
    spec = StorageSpec(**storage)
    refusals = refuse_storage(SutSpec(image="i", deployment=deployment, storage=spec), STORAGES[spec.kind])
    return None if refusals is None else refusals.why


@pytest.mark.parametrize("kind", sorted(set(STORAGES) - {"claim"}))
def test_a_container_can_have_every_storage_but_a_clusters(kind: str) -> None:
    assert refused("container", kind=kind) is None


@pytest.mark.parametrize(
    ("kind", "allowed"), [("bind", True), ("tmpfs", True), ("block", True), ("layer", False), ("volume", False)]
)
def test_a_bare_server_has_no_engine_that_would_give_it_a_layer_or_a_volume(kind: str, allowed: bool) -> None:
    why = refused("bare", kind=kind)
    assert (why is None) == allowed
    assert allowed or "no engine" in (why or "")


@pytest.mark.parametrize(
    ("spec", "key"),
    [
        ({"copy_up": True}, "copy_up"),
        ({"kind": "volume", "size": "1G"}, "size"),
        ({"kind": "tmpfs", "file_system": "xfs"}, "file_system"),
        ({"kind": "layer", "device": "/dev/sdz"}, "device"),
        ({"kind": "nfs", "size": "1G"}, "size"),
        ({"sync": True}, "sync"),
        ({"kind": "block", "rsize": "64K"}, "rsize"),
    ],
)
def test_a_key_that_would_do_nothing_is_refused(spec: dict[str, Any], key: str) -> None:
    assert f"`{key}` has no effect" in (refused("container", **spec) or "")


def test_a_virtual_machine_is_not_offered_what_was_tried_of_none() -> None:
    assert "`nfs` is not available for `vm`" in (refused("vm", kind="nfs") or "")
    assert refused("bare", kind="nfs", sync=True, rsize="64K", wsize="1M") is None


def test_no_limit_of_the_sut_s_slows_a_server_s_disk() -> None:
    slowed = SutSpec(
        image="i", deployment="bare", storage=StorageSpec(kind="nfs"), limits=LimitsSpec(disk_iops=100)
    )
    refusals = refuse_storage(slowed, STORAGES["nfs"])
    assert refusals is not None
    assert "belongs to its server" in refusals.why


def test_a_given_device_has_a_size_already() -> None:
    assert "already has a size" in (refused("bare", kind="block", device="/dev/sdz", size="1G") or "")


@pytest.mark.parametrize("device", ["sdz", "/dev/", "/dev/a b", "/home/x"])
def test_a_device_is_a_path_below_dev(device: str) -> None:
    with pytest.raises(ValidationError):
        StorageSpec(kind="block", device=device)


def test_the_page_cache_can_be_chosen_for_all() -> None:
    others = set(STORAGES) - {"claim"}
    assert all(refused("container", kind=kind, cache="warmed") is None for kind in others)
    assert refused("pod", kind="claim", storage_class="fast", cache="warmed") is None


def test_a_claim_is_of_a_named_class_and_for_a_pod() -> None:
    assert refused("pod", kind="claim", storage_class="fast", size="1G") is None
    assert "none is named" in (refused("pod", kind="claim") or "")
    outside = refused("container", kind="claim", storage_class="a") or ""
    assert "`claim` is not available for `container`" in outside
    assert "`storage_class` has no effect" in (refused("pod", kind="tmpfs", storage_class="fast") or "")
