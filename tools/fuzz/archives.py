"""Images: tars with hostile entries, and what describes them."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from random import Random

from tare.images import Workshop
from tare.images.digest import list_tree
from tare.images.oci.saved import SavedTar
from tare.images.oci.unpack import unpack
from tare.sites.fake import FakeHost
from tools.fuzz import mutations
from tools.fuzz.documents import Accepted

_NAMES = (
    "a", "b", "a/b", "a/b/c", "b/a", "//a", "./b", "/", ".wh.a", "a/.wh..wh..opq", "a/.wh.b", ".wh...", "../o",
    "a/../b",
    "etc/passwd", "n" * 300, "a\nb", "\u202e", "d/" * 40 + "x",
)  # fmt: skip
_TARGETS = (
    "a",
    "b",
    "/",
    "..",
    "../..",
    "a/b",
    "../outside",
    "/OUT",
    "OUT/file",
    "b/../../outside",
    "//",
    "a/..",
    ".",
)
_KINDS = (
    tarfile.REGTYPE, tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE,
    tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, b"Z",
)  # fmt: skip


def image(chance: Random, place: Path) -> object:
    """One to three layers of hostile entries, some damaged: what stands beside the root stays as it was."""
    root, outside = place / "root", place / "outside"
    for path in (root, outside):
        path.mkdir()
    (outside / "file").write_text("kept")
    before = _seen(outside)
    layers = []
    for number in range(chance.choice((1, 1, 2, 3))):
        content = _layer(chance, str(outside))
        layers.append(place / f"layer{number}.tar")
        layers[-1].write_bytes(mutations.binary(content, chance) if chance.random() < 0.3 else content)
    try:
        unpack(layers, root)
        return list(list_tree(root))
    except OSError:
        return None  # a name too long, say; `prepare` makes a sentence of it
    finally:
        if _seen(outside) != before or {path.name for path in place.iterdir()} - {"root", "outside"} - {
            layer.name for layer in layers
        }:
            raise Accepted("something outside of the root was changed")


def _seen(outside: Path) -> object:
    paths = (outside, *outside.rglob("*"))
    return [
        (str(path), (about := path.lstat()).st_mode, about.st_nlink, about.st_size, about.st_mtime_ns)
        for path in paths
    ]


def _layer(chance: Random, outside: str) -> bytes:
    file = io.BytesIO()
    with tarfile.open(
        fileobj=file, mode="w", format=chance.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT))
    ) as tar:
        for _ in range(chance.randrange(1, 12)):
            entry = tarfile.TarInfo(chance.choice(_NAMES))
            entry.type, entry.mode = chance.choice(_KINDS), chance.choice((0o755, 0o644, 0, 0o7777))
            entry.linkname = chance.choice(_TARGETS).replace("OUT", outside)
            entry.uid, entry.gid, entry.mtime = os.geteuid(), os.getegid(), chance.choice((0, 1, 2**40, -5))
            content = b"new" * chance.randrange(400) if entry.type == tarfile.REGTYPE else b""
            entry.size = len(content)
            try:
                tar.addfile(entry, io.BytesIO(content))
            except ValueError:
                continue  # the format has no way to say that
    return file.getvalue()


_CONFIG = {
    "architecture": "", "os": "linux",
    "config": {
        "User": "db:db", "Env": ["A=b"], "Entrypoint": ["/e"], "Cmd": None, "WorkingDir": "/",
        "Volumes": {"/d": {}},
    },
}  # fmt: skip


def saved(chance: Random, place: Path) -> object:
    """What `docker save` writes and OCI layouts in a tar, with changed documents."""
    layer = _layer(chance, str(place))
    config = json.dumps(mutations.tree(_CONFIG, chance) if chance.random() < 0.5 else _CONFIG).encode()
    digest = [hashlib.sha256(each).hexdigest() for each in (config, layer)]
    manifest: object = [
        {"Config": f"blobs/sha256/{digest[0]}", "RepoTags": None, "Layers": [f"blobs/sha256/{digest[1]}"]}
    ]
    oci: object = {
        "config": {"digest": f"sha256:{digest[0]}", "size": len(config)},
        "layers": [{"digest": f"sha256:{digest[1]}", "size": len(layer)}],
    }
    oci_text = json.dumps(mutations.tree(oci, chance) if chance.random() < 0.5 else oci).encode()
    index: object = {
        "manifests": [{"digest": f"sha256:{hashlib.sha256(oci_text).hexdigest()}", "size": len(oci_text)}]
    }
    files = {f"blobs/sha256/{digest[0]}": config, f"blobs/sha256/{digest[1]}": layer}
    if chance.random() < 0.5:
        files["manifest.json"] = json.dumps(mutations.tree(manifest, chance)).encode()
    else:
        files[f"blobs/sha256/{hashlib.sha256(oci_text).hexdigest()}"] = oci_text
        files["index.json"] = json.dumps(mutations.tree(index, chance) if chance.random() < 0.5 else index).encode()
    with tarfile.open(place / "saved.tar", "w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    (place / "scratch").mkdir()
    try:
        archive = SavedTar().fetch(str(place / "saved.tar"), Workshop(FakeHost(), None), place / "scratch")
        (place / "root").mkdir()
        unpack(archive.layers, place / "root")
    except OSError:
        return None
    return archive.config
