"""Which storages a deployment can have, and which keys mean something to a storage."""

from __future__ import annotations

from tare.study.model import StorageSpec, SutSpec
from tare.study.registry import Usable
from tare.study.rules.placement import Refusal

_FOR_ALL = frozenset({"kind", "cache"})


def refuse(sut: SutSpec, usable: Usable) -> Refusal | None:
    """The reason why the SUT cannot have its storage so, `None` where it can."""
    storage = sut.storage
    if usable.deployments is not None and sut.deployment not in usable.deployments:
        names = " or ".join(f"`{name}`" for name in sorted(usable.deployments))
        why = f"the storage `{storage.kind}` is not offered to `{sut.deployment}`"
        if usable.by_engine:
            why = f"`{sut.deployment}` has no engine that could give it the storage `{storage.kind}`"
        keys = (("sut", "storage", "kind"), ("sut", "deployment"))
        return Refusal(keys, why, f"use {names} for the SUT, or another storage")
    usual = StorageSpec()
    for key in StorageSpec.model_fields:
        if key in _FOR_ALL or key in usable.options or getattr(storage, key) == getattr(usual, key):
            continue
        why = f"`{key}` means nothing to the storage `{storage.kind}`"
        return Refusal((("sut", "storage", key), ("sut", "storage", "kind")), why, "leave it out")
    if storage.kind == "nfs" and sut.limits.disk_iops is not None:
        why = "the disk below the storage `nfs` is its server's, whose work no limit of the SUT's sees"
        at = (("sut", "limits", "disk_iops"), ("sut", "storage", "kind"))
        return Refusal(at, why, "leave `disk_iops` out, or use another storage")
    if storage.device is not None and storage.size is not None:
        clash = (("sut", "storage", "size"), ("sut", "storage", "device"))
        return Refusal(clash, "a given device has a size of its own", "leave `size` out")
    return None
