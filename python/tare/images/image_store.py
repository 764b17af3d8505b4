"""The images that are ready on this machine.

images/DIGEST/ holds rootfs/, its listing tree.jsonl, the snapshot of its inodes and image.json, written last;
keys/KEY holds a digest. bases/KEY.tar is a root that several recipes start from.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from tare.deployments.directories import remove_tree
from tare.errors import EnvironmentLacks, RunFailed, StoreError, StudyError
from tare.images import Image, ImageConfig, inodes_program
from tare.images.accounts import owner_in
from tare.images.digest import Entry, Listed, list_tree, parse_listing
from tare.sites.layout import Layout, make_directory, make_home
from tare.sites.ledger import Kind, Ledger
from tare.sites.local import LocalHost

FORMAT, _OF_ROOT = 2, 1
"""Newest format that this tare reads, which it writes for a tree that a user unpacked; and the format that it
writes for a tree unpacked by root. An older tare reads only the latter."""
_FLOCK = "hhqqi4x"
"""struct flock of 64-bit Linux: type, whence, start, length, process."""
_LEAST_DIGITS = 4
"""Fewest digits of an abbreviated digest, as in git."""


@dataclass(frozen=True)
class StoredImage:
    """A stored image. `size_bytes`: size of the unpacked files; `made_at`: seconds since the epoch."""

    image: Image
    size_bytes: int
    made_at: float

    def out_of_engine(self) -> StoredImage:
        """A copy without the ID of an engine's image."""
        return replace(self, image=replace(self.image, engine_id=None))


@dataclass(frozen=True)
class ImageStore:
    """Images kept on one machine. They are complete: a rename puts them here."""

    layout: Layout
    ledger: Ledger

    def find(self, key: str) -> StoredImage | None:
        """The image made under a cache key; `None` if there is none."""
        try:
            digest = (self._keys / _file_name(key)).read_text().strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return self.get(digest)

    def get(self, digest: str) -> StoredImage | None:
        """The image with that digest; `None` if there is none."""
        home = self._home(digest)
        try:
            tree = json.loads((home / "image.json").read_bytes())
            if tree["format"] > FORMAT:
                raise StoreError(f"{home} was made by a newer tare", hint="update tare")
            image = _parse_description(tree, str(home / "rootfs"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, TypeError, KeyError) as error:
            raise StoreError(f"{home}/image.json is damaged: {error}", hint=f"remove {home}") from error
        return image if (home / "rootfs").is_dir() else None

    def listing(self, digest: str) -> tuple[Entry, ...]:
        """The tree as it was when it was put here."""
        path = self._home(digest) / "tree.jsonl"
        try:
            return tuple(parse_listing(path.read_text(encoding="ascii")))
        except (OSError, ValueError, TypeError) as error:
            raise StoreError(f"{path} cannot be read: {error}", hint="`tare images build --rebuild`") from error

    def resolve(self, given: str) -> tuple[StoredImage, ...]:
        """Images that a digest, its beginning (four digits or more), or a reference means.

        A reference means all of its images; a beginning that fits several images is an error.
        """
        known = self.all()
        if by_reference := tuple(each for each in known if each.image.reference == given):
            return by_reference
        digits = given.removeprefix("sha256:")
        fitting = [each for each in known if len(digits) >= _LEAST_DIGITS and each.image.digest.startswith(digits)]
        if len(fitting) == 1:
            return tuple(fitting)
        if fitting:
            listed = ", ".join(each.image.digest[: len(digits) + 4] for each in fitting)
            raise StudyError(f"{given!r} is ambiguous: {listed}", hint="give more digits")
        raise StudyError(f"no image {given!r} is here", hint="`tare images list` lists the images")

    def all(self) -> tuple[StoredImage, ...]:
        """All images, the oldest first."""
        homes = [path.parent for path in self.layout.images.glob("*/image.json")]
        images = [each for home in homes if (each := self.get(home.name)) is not None]
        return tuple(sorted(images, key=lambda each: each.made_at))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Let nobody else change the store; use it while an image is looked up, moved in or removed."""
        self._open()
        with (self.layout.images / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextmanager
    def builder(self, reference: str) -> Iterator[None]:
        """Let one builder of an image work at a time; others wait and then find what it built. Not under the lock.

        A byte of the lock file stands for the image (F_OFD_SETLKW of fcntl(2)), so that no file is left.
        """
        self._open()
        byte = int.from_bytes(hashlib.sha256(reference.encode()).digest()[:7], "big")
        with (self.layout.images / "lock").open("a") as file:
            fcntl.fcntl(file, fcntl.F_OFD_SETLKW, struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0))
            yield

    def _open(self) -> None:
        """Make the directory. Root's is closed to others: a tree may hold set-uid programs of an image's maker."""
        images = self.layout.images
        make_home(self.layout.home)
        make_directory(images)
        if os.geteuid() == 0:
            images.chmod(0o700)

    def hold(self, digest: str) -> None:
        """Prevent `remove` from removing this image as long as this process lives, however it ends.

        The descriptor stays open on purpose: a flock(2) goes away with it, even after a `kill -9`.
        """
        fcntl.flock(os.open(self._home(digest), os.O_RDONLY | os.O_DIRECTORY), fcntl.LOCK_SH)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A directory on the same file system, removed at the end; after a `kill -9` the ledger still lists it."""
        path = self.layout.images / f".scratch-{uuid4().hex}"
        self.ledger.note(Kind.PATH, str(path))
        path.mkdir(parents=True)
        try:
            yield path
        finally:
            self._discard(path)

    def sweep(self) -> None:
        """Remove what dead builders have left here. Only under the lock."""
        for entry in self.ledger.abandoned():
            if entry.kind is Kind.PATH and Path(entry.ident).parent == self.layout.images:
                self._discard(Path(entry.ident))

    def put(self, image: Image, tree: Sequence[Entry], rootfs: Path) -> StoredImage:
        """Move a finished tree in. An intact image with this digest that is already here is kept."""
        home, standing = self._home(image.digest), self.get(image.digest)
        if standing is not None and standing.image.listed == image.listed:
            known = Listed(tree) if image.listed else None
            if tuple(list_tree(home / "rootfs", known)) == tuple(tree):
                return standing
        if home.exists():
            with self.exclusive(image.digest):
                self.remove(image.digest)
        self.ledger.note(Kind.PATH, str(home), keep=True)
        home.mkdir(parents=True)
        rootfs.replace(home / "rootfs")
        with (home / "tree.jsonl").open("w", encoding="ascii") as listing:
            listing.writelines(entry.line for entry in tree)
        inodes_program.take(str(home / "rootfs"), str(home / "inodes"))
        os.sync()  # write the tree's files before the description that calls them complete
        stored = StoredImage(replace(image, rootfs=str(home / "rootfs")), _size(home / "rootfs"), time.time())
        self.rewrite(stored)
        return stored

    def remember(self, key: str, digest: str) -> None:
        """Map the cache key to the digest from now on."""
        self._keys.mkdir(parents=True, exist_ok=True)
        self.ledger.note(Kind.PATH, str(self._keys / _file_name(key)), keep=True)
        _write_whole(self._keys / _file_name(key), digest.encode())

    def base(self, key: str) -> Path:
        """Path of the root that recipes of one Debian release start from; see `Bases`."""
        return self.layout.images / "bases" / f"{_file_name(key)}.tar"

    def keep_base(self, key: str, made: Path) -> None:
        """Keep a root that recipes start from: `made` is complete, and synced to disk."""
        base = self.base(key)
        base.parent.mkdir(parents=True, exist_ok=True)
        with made.open("rb") as file:
            os.fsync(file.fileno())
        self.ledger.note(Kind.PATH, str(base), keep=True)
        made.replace(base)

    def rewrite(self, stored: StoredImage) -> None:
        """Store what changed about an image, such as its ID in the engine."""
        tree = asdict(stored) | {"format": FORMAT if stored.image.listed else _OF_ROOT}
        del tree["image"]["rootfs"], tree["image"]["owner"]
        _write_whole(self._home(stored.image.digest) / "image.json", json.dumps(tree, indent=1).encode())

    @contextmanager
    def exclusive(self, digest: str) -> Iterator[None]:
        """Ensure that nobody holds the image inside the context; `EnvironmentLacks` if somebody does."""
        handle = os.open(self._home(digest), os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as error:
            raise EnvironmentLacks(
                f"a running tare is using the image {digest[:12]}",
                hint="wait until it ends, or stop it with Ctrl-C",
            ) from error
        finally:
            os.close(handle)

    def remove(self, digest: str) -> None:
        """Remove an image atomically, by a rename first. Only under the lock and inside `exclusive`."""
        home, gone = self._home(digest), self.layout.images / f".removed-{uuid4().hex}"
        self.ledger.note(Kind.PATH, str(gone))
        home.rename(gone)
        self.ledger.forget(Kind.PATH, str(home))
        self._discard(gone)
        for path in self._keys.glob("*"):
            if path.read_text().strip() == digest:
                path.unlink()
                self.ledger.forget(Kind.PATH, str(path))

    def _discard(self, path: Path) -> None:
        """Remove a directory with everything that a killed builder mounted in it; what stays is left to a sweep."""
        with suppress(RunFailed):
            remove_tree(LocalHost(), str(path))
            self.ledger.forget(Kind.PATH, str(path))

    def _home(self, digest: str) -> Path:
        return self.layout.images / _file_name(digest)

    @property
    def _keys(self) -> Path:
        return self.layout.images / "keys"


def _parse_description(tree: dict[str, Any], rootfs: str) -> StoredImage:
    image, config = tree["image"], tree["image"]["config"]
    pairs = {name: tuple((key, value) for key, value in image[name]) for name in ("packages", "labels")}
    return StoredImage(
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
            owner=owner_in(Path(rootfs), config["user"]),
            listed=image.get("listed", False),
        ),
        size_bytes=tree["size_bytes"],
        made_at=tree["made_at"],
    )


def _file_name(key: str) -> str:
    """File name of a key or digest: hexadecimal, some with an algorithm before a colon."""
    name = key.replace(":", "-")
    if not name or not all(letter.isalnum() or letter == "-" for letter in name):
        raise StoreError(f"{key!r} is not a digest")
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
