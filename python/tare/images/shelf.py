"""The images that are ready on this machine: images/DIGEST/{rootfs/, image.json}, and keys/KEY naming a digest."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from tare.errors import StoreError
from tare.images import Image, ImageConfig
from tare.sites.layout import Layout
from tare.sites.ledger import Kind, Ledger

FORMAT = 1


@dataclass(frozen=True)
class Shelved:
    """An image on the shelf. `size_bytes`: of the unpacked files; `made_at`: seconds since the epoch."""

    image: Image
    size_bytes: int
    made_at: float


@dataclass(frozen=True)
class Shelf:
    """Images kept on one machine. What stands on the shelf is whole: it is put there by a rename."""

    layout: Layout
    ledger: Ledger

    def find(self, key: str) -> Shelved | None:
        """The image that was made under a cache key."""
        try:
            digest = (self._keys / _plain(key)).read_text().strip()
        except FileNotFoundError:
            return None
        return self.get(digest)

    def get(self, digest: str) -> Shelved | None:
        """The image with that digest of its tree."""
        try:
            tree = json.loads((self._home(digest) / "image.json").read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StoreError(f"{self._home(digest)}/image.json is damaged: {error}", hint="remove it") from error
        if tree["format"] > FORMAT:
            raise StoreError(f"{self._home(digest)} was made by a newer tare", hint="update tare")
        return _shelved(tree, str(self._home(digest) / "rootfs"))

    def all(self) -> tuple[Shelved, ...]:
        """Everything on the shelf, the oldest first."""
        homes = [path.parent for path in self.layout.images.glob("*/image.json")]
        found = [each for home in homes if (each := self.get(home.name)) is not None]
        return tuple(sorted(found, key=lambda each: each.made_at))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """One builder at a time; the others wait and then find what it built."""
        self.layout.images.mkdir(parents=True, exist_ok=True)
        with (self.layout.images / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A directory on the shelf's file system that goes away; after a `kill -9` the ledger still names it."""
        path = self.layout.images / f".scratch-{uuid4().hex}"
        self.ledger.note(Kind.PATH, str(path))
        path.mkdir(parents=True)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
            self.ledger.forget(Kind.PATH, str(path))

    def put(self, image: Image, rootfs: Path) -> Image:
        """Move a finished tree onto the shelf; the same digest that stands there already is kept."""
        home = self._home(image.digest)
        if self.get(image.digest) is None:
            shutil.rmtree(home, ignore_errors=True)
            self.ledger.note(Kind.PATH, str(home), keep=True)
            home.mkdir(parents=True)
            rootfs.replace(home / "rootfs")
        shelved = Shelved(replace(image, rootfs=str(home / "rootfs")), _size(home / "rootfs"), time.time())
        self._write(shelved)
        return shelved.image

    def know(self, key: str, digest: str) -> None:
        """The cache key leads to the digest from now on."""
        self._keys.mkdir(parents=True, exist_ok=True)
        self.ledger.note(Kind.PATH, str(self._keys / _plain(key)), keep=True)
        _write_whole(self._keys / _plain(key), digest.encode())

    def rewrite(self, shelved: Shelved) -> None:
        """Store what changed about an image, such as the engine's id of it."""
        self._write(shelved)

    def remove(self, digest: str) -> None:
        """Take an image off the shelf, first its description, so that no half of it is ever taken for whole."""
        home = self._home(digest)
        (home / "image.json").unlink(missing_ok=True)
        shutil.rmtree(home, ignore_errors=True)
        self.ledger.forget(Kind.PATH, str(home))
        for path in self._keys.glob("*"):
            if path.read_text().strip() == digest:
                path.unlink()
                self.ledger.forget(Kind.PATH, str(path))

    def _write(self, shelved: Shelved) -> None:
        tree = asdict(shelved) | {"format": FORMAT}
        del tree["image"]["rootfs"]
        home = self._home(shelved.image.digest)
        os.sync()  # the tree's files before the description that calls them whole
        _write_whole(home / "image.json", json.dumps(tree, indent=1).encode())

    def _home(self, digest: str) -> Path:
        return self.layout.images / _plain(digest)

    @property
    def _keys(self) -> Path:
        return self.layout.images / "keys"


def _shelved(tree: dict[str, Any], rootfs: str) -> Shelved:
    image, config = tree["image"], tree["image"]["config"]
    pairs = {name: tuple((key, value) for key, value in image[name]) for name in ("packages", "labels")}
    return Shelved(
        image=Image(
            reference=image["reference"],
            digest=image["digest"],
            rootfs=rootfs,
            engine_id=image["engine_id"],
            config=ImageConfig(
                entrypoint=tuple(config["entrypoint"]),
                command=tuple(config["command"]),
                env=tuple((name, value) for name, value in config["env"]),
                user=config["user"],
                workdir=config["workdir"],
                data_dir=config["data_dir"],
            ),
            packages=pairs["packages"],
            labels=pairs["labels"],
        ),
        size_bytes=tree["size_bytes"],
        made_at=tree["made_at"],
    )


def _plain(key: str) -> str:
    """Keys and digests are hexadecimal, some with an algorithm before a colon."""
    name = key.replace(":", "-")
    if not name or not all(letter.isalnum() or letter == "-" for letter in name):
        raise StoreError(f"{key!r} is no digest")
    return name


def _size(root: Path) -> int:
    files = [path.lstat() for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    return sum({(info.st_dev, info.st_ino): info.st_size for info in files}.values())


def _write_whole(path: Path, content: bytes) -> None:
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
