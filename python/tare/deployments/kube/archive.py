"""An image as containerd imports it: a tar of layers and configuration (Docker image specification 1.2)."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping

LAYER, CONFIG, MANIFEST = "layer.tar", "config.json", "manifest.json"
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Machine name of `uname -m` → of an image (OCI image specification, config.md)."""


def settings(layer_digest: str, machine: str, *, program: str | None = None, labels: Mapping[str, str]) -> bytes:
    """Configuration of an image of one layer. `layer_digest`: sha256 of the layer's tar, in hexadecimal.

    `program`: the entrypoint. Without it, the configuration holds nothing that a pod would inherit, since the pod
    defines everything around a task's program.
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
    """Manifest of the archive: its files and the name of the image."""
    return json.dumps([{"Config": CONFIG, "RepoTags": [name], "Layers": [LAYER]}]).encode()


def archive(name: str, layer: bytes, machine: str, program: str) -> bytes:
    """A whole image archive, for a layer that is small enough to hold in memory."""
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
