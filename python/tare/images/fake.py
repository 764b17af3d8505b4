"""An image source for tests: one layer with one file that holds the requested text."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

from tare.images import Archive, ImageConfig, Workshop


class FakeImages:
    """`fake:TEXT` is an image whose only file, /text, holds TEXT."""

    def cache_key(self, reference: str, workshop: Workshop) -> str | None:
        """Hash of the text, which determines the image."""
        del workshop
        return hashlib.sha256(reference.encode()).hexdigest()

    def fetch(self, reference: str, workshop: Workshop, scratch: Path) -> Archive:
        """Write the layer."""
        del workshop
        path = scratch / "layer.tar"
        with tarfile.open(path, "w") as tar:
            member = tarfile.TarInfo("text")
            member.size = len(reference.encode())
            tar.addfile(member, io.BytesIO(reference.encode()))
        return Archive((path,), ImageConfig(command=("/text",)))
