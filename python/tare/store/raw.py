"""The raw files of a store: in its own directory, or behind fsspec with copies on this machine."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

from tare.errors import EnvironmentLacks, StoreError
from tare.plain_files import must_be_plain, open_plain
from tare.record.run_record import RunRecord
from tare.sites.layout import make_directory
from tare.store.files import StoreLayout, attempt_name, move_all_durably, raw_name, sync_file

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

CHUNK = 4 * 2**20
"""Bytes of a file that are in memory at once, whatever its size."""
_AT_ONCE = 8


@dataclass(frozen=True)
class RawFile:
    """A row of the table `raw_files`."""

    run_id: str
    attempt: int
    name: str
    bytes: int
    sha256: str

    def __post_init__(self) -> None:
        """Raises `StoreError`: a store of somebody else may name any file, and SQLite keeps any value anywhere."""
        attempt_name(self.run_id, self.attempt)
        raw_name(self.name)
        if type(self.bytes) is not int or not isinstance(self.sha256, str):
            raise StoreError(
                f"the store has no size or digest of the raw file {self.name!r} of {self.run_id}",
                hint="`tare store repair` saves the other attempts",
            )


class RawFiles(Protocol):
    """The place of a store's raw files."""

    def path(self, record: RunRecord, name: str) -> Path:
        """Path of a file, or of a directory of files, on this machine.

        Files at another place are copied here first. Raises `StoreError` for links and all else that no tare makes.
        """
        ...

    def open(self, record: RunRecord, name: str) -> BinaryIO:
        """Open a file; no link in the store is followed. Raises `OSError`, `StoreError`."""
        ...

    def holds(self, record: RunRecord, name: str) -> bool:
        """Whether the record has such a file; no file is copied."""
        ...

    def keep(self, staging: Path, files: Sequence[RawFile], names: Sequence[str]) -> None:
        """Make the content of the directories `names` in the staging area durable.

        Raises `OSError`, `StoreError`.
        """
        ...


class OwnFiles:
    """Raw files in the store's directory."""

    def __init__(self, layout: StoreLayout) -> None:
        self._layout = layout

    def path(self, record: RunRecord, name: str) -> Path:
        """Path of the file, whether or not it exists.

        Each name on the way and below is looked at first; whoever may write to the store can still change it later.
        """
        inside = self._name(record, name)
        must_be_plain(self._layout.root, inside)
        return self._layout.root / inside

    def open(self, record: RunRecord, name: str) -> BinaryIO:
        """Open the file one component after the other."""
        return open_plain(self._layout.root, self._name(record, name))

    def holds(self, record: RunRecord, name: str) -> bool:
        """Whether the directory has such a file; `path` looks at the names on the way."""
        return (self._layout.root / self._name(record, name)).is_file()

    def _name(self, record: RunRecord, name: str) -> str:
        return f"{self._layout.raw.name}/{attempt_name(record.run_id, record.attempt)}/{raw_name(name)}"

    def keep(self, staging: Path, files: Sequence[RawFile], names: Sequence[str]) -> None:  # noqa: ARG002 - one shape
        """Move the directories by renames."""
        move_all_durably(staging, self._layout.raw, names)


Listing = Callable[[RunRecord], Mapping[str, RawFile]]
"""Returns the files of an attempt by name, as the database lists them."""


class SharedFiles:
    """Content-addressed raw files below a URL of fsspec: PREFIX/sha256/AB/DIGEST.

    Files with the same name are equal. An object of a bucket is complete or absent. In a file system, a file is
    first written under another name.
    """

    def __init__(self, url: str, copies: Path, listing: Listing) -> None:
        self._url, self._copies, self._listing = url, copies, listing
        self._remote: tuple[AbstractFileSystem, str] | None = None

    def path(self, record: RunRecord, name: str) -> Path:
        """Copy a file here and verify its digest. Raises `StoreError`."""
        own, name = self._copies / attempt_name(record.run_id, record.attempt), raw_name(name)
        known = self._listing(record)
        wanted = [file for key, file in known.items() if not name or key == name or key.startswith(f"{name}/")]
        lacking = [file for file in wanted if not _is_copy(own / file.name, file)]
        try:
            make_directory(own)
            _each(lambda file: self._bring(file, own / file.name), lacking)
        except OSError as error:
            raise StoreError(f"raw files cannot be copied to {own}: {error}", hint="free disk space") from error
        return own / name

    def open(self, record: RunRecord, name: str) -> BinaryIO:
        """Copy a file here, verify its digest, and open it."""
        return self.path(record, name).open("rb")

    def holds(self, record: RunRecord, name: str) -> bool:
        """Whether the record lists such a file."""
        return name in record.raw

    def keep(self, staging: Path, files: Sequence[RawFile], names: Sequence[str]) -> None:
        """Upload missing files; afterwards, the staged files are this machine's copies."""
        first = {file.sha256: file for file in files}
        _each(lambda file: self._send(staging / attempt_name(file.run_id, file.attempt) / file.name, file),
              list(first.values()))  # fmt: skip
        self._copies.mkdir(parents=True, exist_ok=True)
        for name in names:
            shutil.rmtree(self._copies / name, ignore_errors=True)
            (staging / name).rename(self._copies / name)

    def check(self, files: Sequence[RawFile]) -> list[tuple[RawFile, str | None]]:
        """Read each file at its place, without keeping it; return what is wrong with it, or `None`."""
        wrong: dict[str, str | None] = {}

        def look(file: RawFile) -> None:
            wrong[file.sha256] = self._fault(file)

        _each(look, list({file.sha256: file for file in files}.values()))
        return [(file, wrong[file.sha256]) for file in files]

    def _fault(self, file: RawFile) -> str | None:
        with self._in_a_sentence(f"{file.name} of {attempt_name(file.run_id, file.attempt)}"):
            system, root = self._opened()
            try:
                digest, key = hashlib.sha256(), _key(root, file.sha256)
                if system.info(key)["size"] != file.bytes:
                    return "was changed"
                with system.open(key, "rb") as source:
                    for chunk in _chunks(source, file.bytes):
                        digest.update(chunk)
            except FileNotFoundError:
                return "is missing"
        return None if digest.hexdigest() == file.sha256 else "was changed"

    def _send(self, path: Path, file: RawFile) -> None:
        with self._in_a_sentence(f"{file.name} of {attempt_name(file.run_id, file.attempt)}"):
            system, root = self._opened()
            key = _key(root, file.sha256)
            if _size(system, key) == file.bytes:
                return
            if _is_file_system(self._url):
                _put_whole(system, path, key)
            else:
                system.put_file(str(path), key)
            if (there := _size(system, key)) != file.bytes:
                raise OSError(f"{there or 'none'} of {file.bytes} bytes arrived")

    def _bring(self, file: RawFile, target: Path) -> None:
        what = f"{file.name} of {attempt_name(file.run_id, file.attempt)}"
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{uuid4().hex}.part")
        digest = hashlib.sha256()
        try:
            with self._in_a_sentence(what):
                system, root = self._opened()
                key = _key(root, file.sha256)
                system.info(key)  # obstore's file object of a missing file cannot be closed
                with system.open(key, "rb") as source, part.open("wb") as copy:
                    for chunk in _chunks(source, file.bytes):
                        digest.update(chunk)
                        copy.write(chunk)
            if digest.hexdigest() != file.sha256:
                hint = "`tare store verify` lists all that is damaged; restore it from a backup of the bucket"
                raise StoreError(f"the raw file {what} at {self._url} is not what was committed", hint=hint)
            part.rename(target)
        finally:
            part.unlink(missing_ok=True)

    def _opened(self) -> tuple[AbstractFileSystem, str]:
        if self._remote is None:
            self._remote = file_system(self._url)
        return self._remote

    @contextmanager
    def _in_a_sentence(self, what: str) -> Iterator[None]:
        """Turn any error of a library behind fsspec into one sentence."""
        try:
            yield
        except (StoreError, EnvironmentLacks):
            raise
        except FileNotFoundError as error:
            # A missing bucket is not a missing object: obstore raises the same error for both.
            if _code(error) == "NoSuchBucket":
                raise StoreError(f"the bucket of {self._url} does not exist", hint=_MAKE_BUCKET) from error
            hint = f"check that {self._url} exists and that nothing in it was removed"
            raise StoreError(f"the raw file {what} is not at {self._url}", hint=hint) from error
        except Exception as error:
            if isinstance(error, OSError) and str(self._copies) in str(error.filename or ""):
                raise
            raise self._refusal(what, error) from error

    def _refusal(self, what: str, error: Exception) -> StoreError:
        code = _code(error)
        if code == "NoSuchBucket":
            return StoreError(f"the bucket of {self._url} does not exist", hint=_MAKE_BUCKET)
        if code in _FULL or getattr(error, "errno", None) in _NO_ROOM or "No space left" in str(error):
            hint = "free space there, then run the same command again; committed runs are kept"
            return StoreError(f"{self._url} has no space for the raw file {what}", hint=hint)
        if code in _DENIED or isinstance(error, PermissionError):
            hint = "check the credentials, and that they may read, list and write there"
            return StoreError(f"access to {self._url} is denied: {code or _first_line(error)}", hint=hint)
        hint = "check the network, the credentials and the place, then run the same command again"
        return StoreError(
            f"{self._url} does not serve the raw file {what}: {code or _first_line(error)}", hint=hint
        )


_MAKE_BUCKET = "create it with the provider's tools, or correct raw="
_FULL = {"QuotaExceeded", "InsufficientStorage", "XMinioStorageFull"}
"""S3 itself has no limit; these codes come from servers that have one."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_DENIED = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}


def _code(error: Exception) -> str | None:
    """S3's code of an error."""
    match = re.search(r"<Code>(\w+)</Code>", str(error))
    if match is not None:
        return match[1]
    # The answer to HEAD has no body.
    return "AccessDenied" if re.search(r"status code: 40[13]\b|\b403 Forbidden|Unauthorized", str(error)) else None


def file_system(url: str) -> tuple[AbstractFileSystem, str]:
    """The implementation for the URL's protocol, and the path in it. Raises `StoreError`, `EnvironmentLacks`."""
    protocol = urlsplit(url).scheme
    try:
        import fsspec

        if protocol in ("s3", "s3a"):
            from tare.store.bucket import bucket_system

            return bucket_system(url)
        system, root = fsspec.core.url_to_fs(url)
    except ImportError as error:
        hint = "install tare-bench[fleet-store]" if protocol.startswith("s3") else "install what fsspec asks for"
        raise EnvironmentLacks(f"raw files at {protocol}:// need another package: {error}", hint=hint) from error
    except ValueError as error:
        raise StoreError(f"raw={url} cannot be used: {error}", hint="use s3://BUCKET/PREFIX") from error
    return system, str(root)


def file_digest(path: Path) -> str:
    """sha256 of a file's content. Raises `OSError` for all that is no regular file: a FIFO would never end."""
    with open_plain(path.parent, path.name) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy_as_committed(source: BinaryIO, target: Path, file: RawFile) -> bool:
    """Copy a raw file to a new path; returns whether it is what was committed. Raises `OSError`.

    Of a longer file, at most one chunk more than the committed size is written.
    """
    digest = hashlib.sha256()
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as copy:
        for chunk in _chunks(source, file.bytes):
            digest.update(chunk)
            copy.write(chunk)
    return digest.hexdigest() == file.sha256


def _key(root: str, sha256: str) -> str:
    return f"{root}/sha256/{sha256[:2]}/{sha256}"


def _is_file_system(url: str) -> bool:
    """Whether others may see a file while it is being written."""
    return urlsplit(url).scheme in ("file", "local", "sftp", "ssh", "smb", "hdfs", "ftp")


def _put_whole(system: AbstractFileSystem, path: Path, key: str) -> None:
    part = f"{key}.{uuid4().hex}.part"
    system.makedirs(key.rpartition("/")[0], exist_ok=True)
    try:
        system.put_file(str(path), part)
        if urlsplit(str(system.unstrip_protocol(part))).scheme == "file":
            sync_file(Path(part))
        system.mv(part, key)
    except BaseException:
        if system.exists(part):
            system.rm_file(part)
        raise


def _size(system: AbstractFileSystem, key: str) -> int | None:
    try:
        size = system.info(key)["size"]
    except FileNotFoundError:
        return None
    return None if size is None else int(size)


def _chunks(source: Any, length: int) -> Iterator[bytes]:
    """Content in chunks; at most one chunk beyond `length`, as a longer file is wrong in any case."""
    read = 0
    while read <= length and (chunk := source.read(CHUNK)):
        read += len(chunk)
        yield chunk


def _is_copy(path: Path, file: RawFile) -> bool:
    try:
        return os.stat(path).st_size == file.bytes  # noqa: PTH116 - one call
    except OSError:
        return False


def _each(do: Callable[[RawFile], None], files: Sequence[RawFile]) -> None:
    if len(files) < 2:
        for file in files:
            do(file)
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(do, files))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
