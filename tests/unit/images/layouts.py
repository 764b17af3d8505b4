"""OCI layouts and what `docker save` writes, as tests want them."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.unit.images.tars import Entry, file, write_tar

from tare.images.oci.layout import _ARCHITECTURES

HERE = _ARCHITECTURES.get(os.uname().machine, os.uname().machine)
CONFIG = {
    "User": "db:db",
    "Env": ["PATH=/bin", "OPTS=a=b c", "EMPTY="],
    "Entrypoint": ["/entry", "--x"],
    "Cmd": ["server"],
    "WorkingDir": "/srv",
    "Volumes": {"/data": {}},
}
LAYERS: Sequence[list[Entry]] = (
    [file("etc/conf", b"1"), file("old", b"2")],
    [file("etc/conf", b"3"), file(".wh.old")],
)
IMAGE = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


class Layout:
    """An OCI layout that is being written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "blobs" / "sha256").mkdir(parents=True)
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def blob(self, content: bytes, **more: object) -> dict[str, Any]:
        """Its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        self.path(f"sha256:{digest}").write_bytes(content)
        return {"digest": f"sha256:{digest}", "size": len(content), **more}

    def path(self, digest: str) -> Path:
        return self.folder / "blobs" / "sha256" / digest.removeprefix("sha256:")

    def image(
        self,
        layers: Sequence[list[Entry]] = LAYERS,
        config: Mapping[str, object] | None = None,
        **more: object,
    ) -> dict[str, Any]:
        """The descriptor of an image whose first layer is compressed."""
        platform = {"architecture": HERE, "os": "linux", **(config or {})}
        blobs = []
        for number, layer in enumerate(layers):
            content = write_tar(self.folder / "layer.tar", layer).read_bytes()
            (self.folder / "layer.tar").unlink()
            blobs.append(self.blob(content if number else gzip.compress(content, mtime=0)))
        document = self.json({"config": CONFIG, **platform})
        return self.json({"config": document, "layers": blobs}, mediaType=IMAGE, **more)

    def json(self, tree: object, **more: object) -> dict[str, Any]:
        return self.blob(json.dumps(tree).encode(), **more)

    def index(self, *manifests: Mapping[str, Any]) -> Path:
        """Write index.json; the finished layout's folder."""
        (self.folder / "index.json").write_text(json.dumps({"manifests": manifests}))
        return self.folder


def tagged(name: str) -> dict[str, Any]:
    return {"annotations": {"org.opencontainers.image.ref.name": name}}


def platform(architecture: str, system: str = "linux") -> dict[str, Any]:
    return {"platform": {"architecture": architecture, "os": system}}
