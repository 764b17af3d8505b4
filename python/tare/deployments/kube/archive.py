"""An image as containerd imports it: a tar of layers with their configuration (Docker image specification 1.2)."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping

LAYER, CONFIG, MANIFEST = "layer.tar", "config.json", "manifest.json"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""As `uname -m` names a machine → as an image does (OCI image specification, config.md)."""


def settings(layer_digest: str, machine: str, *, program: str | None = None, labels: Mapping[str, str]) -> bytes:
    """The configuration of an image of one layer. `layer_digest`: sha256 of its tar, in hexadecimal.

    `program`: what it runs where nothing is said; else nothing is in it that a pod would inherit, as all that
    surrounds a task's program stands in its pod.
    """
    own = {} if program is None else {"Entrypoint": [program]}
    return json.dumps(
        {
            "architecture": _MACHINES.get(machine, machine),
            "os": "linux",
            "config": {"Labels": dict(labels), **own},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        },
        sort_keys=True,
    ).encode()


def manifest(name: str) -> bytes:
    """What the archive holds, and under which name."""
    return json.dumps([{"Config": CONFIG, "RepoTags": [name], "Layers": [LAYER]}]).encode()


def archive(name: str, layer: bytes, machine: str, program: str) -> bytes:
    """A whole archive of a layer that is small enough to be held in memory."""
    files = {
        MANIFEST: manifest(name),
        CONFIG: settings(hashlib.sha256(layer).hexdigest(), machine, program=program, labels={}),
        LAYER: layer,
    }
    packed = io.BytesIO()
    with tarfile.TarFile(fileobj=packed, mode="w") as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
